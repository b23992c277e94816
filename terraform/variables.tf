variable "project_id" {
  description = "The project that everything is created in. One of its own is best: the right to hear of changes covers all subscriptions of a project."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id is the id of a project, not its name or number: 6 to 30 of a-z, 0-9 and -, the first a letter, such as my-project-123."
  }
}

variable "name" {
  description = "What the names of all resources begin with. Two deployments in one project need two names."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", var.name))
    error_message = "name has 1 to 20 of a-z, 0-9 and -, the first a letter and the last no -, since service accounts are named after it; try regent."
  }
}

variable "regions" {
  description = "The regions that serve. The first is home to what exists once: the scheduler, the registry and, unless it is given, the store."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.regions) > 0
    error_message = "regions is empty; name at least one, such as [\"europe-west1\"]."
  }
  validation {
    condition     = alltrue([for r in var.regions : can(regex("^[a-z]+-[a-z]+[0-9]+$", r))])
    error_message = "regions holds what is no region; write regions, not zones or multi-regions, such as europe-west1."
  }
  validation {
    condition     = length(distinct(var.regions)) == length(var.regions)
    error_message = "regions names a region twice; each has one service, so leave the second out."
  }
}

variable "image" {
  description = "The container image of Regent, pinned by its digest or by a version that is never moved. Its entry point is the regent binary."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64}|:[a-zA-Z0-9_][a-zA-Z0-9._-]*)$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image has to be pinned, so that what runs is what was reviewed: end it with @sha256:DIGEST or :VERSION, and not with :latest."
  }
}

variable "labels" {
  description = "Labels for all resources that can have some."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for k, v in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", k)) && can(regex("^[a-z0-9_-]{0,63}$", v))])
    error_message = "labels holds one that Google Cloud refuses; a key has 1 to 63 of a-z, 0-9, _ and -, the first a letter, and a value up to 63 of the same."
  }
}

# The store.

variable "store" {
  description = "What keeps the leases: firestore (paid by the write; up to about 140 leases renewed every 5 s it is the cheaper one) or spanner (paid by the hour)."
  type        = string
  nullable    = false

  validation {
    condition     = contains(["firestore", "spanner"], var.store)
    error_message = "store is neither firestore nor spanner; choose one of them. Other stores live on one machine, and Cloud Run has none that stays."
  }
}

variable "firestore_database" {
  description = "The id of the Firestore database that is created."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = var.firestore_database == "(default)" || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.firestore_database))
    error_message = "firestore_database is (default), or 4 to 63 of a-z, 0-9 and -, the first a letter and the last no -; try regent."
  }
}

variable "firestore_location" {
  description = "Where Firestore keeps its data: a region, or nam5 or eur3 for several; the first of regions unless it is given. It cannot be changed later."
  type        = string
  default     = null

  validation {
    condition     = var.firestore_location == null || can(regex("^(nam5|eur3|nam7|[a-z]+-[a-z]+[0-9]+)$", var.firestore_location))
    error_message = "firestore_location is no place for Firestore; give a region such as europe-west1, or the multi-region nam5 or eur3."
  }
}

variable "spanner_database" {
  description = "The id of the Spanner database."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9_-]{0,28}[a-z0-9]$", var.spanner_database))
    error_message = "spanner_database has 2 to 30 of a-z, 0-9, _ and -, the first a letter and the last a letter or a digit; try regent."
  }
}

variable "spanner_config" {
  description = "Spanner's instance configuration, such as regional-europe-west1, eur6 or nam-eur-asia1; regional-R for the first of regions R unless it is given."
  type        = string
  default     = null

  validation {
    condition     = var.spanner_config == null || can(regex("^[a-z][a-z0-9-]*[a-z0-9]$", var.spanner_config))
    error_message = "spanner_config is the last part of a configuration's name, such as regional-europe-west1 or eur6; list them with: gcloud spanner instance-configs list."
  }
}

variable "spanner_edition" {
  description = "Spanner's edition. More than one region needs ENTERPRISE_PLUS."
  type        = string
  default     = "STANDARD"
  nullable    = false

  validation {
    condition     = contains(["STANDARD", "ENTERPRISE", "ENTERPRISE_PLUS"], var.spanner_edition)
    error_message = "spanner_edition is not STANDARD, ENTERPRISE or ENTERPRISE_PLUS; choose one of them."
  }
  validation {
    condition     = var.spanner_config == null || startswith(coalesce(var.spanner_config, "regional-"), "regional-") || var.spanner_edition == "ENTERPRISE_PLUS"
    error_message = "spanner_edition has to be ENTERPRISE_PLUS for a spanner_config of several regions; set it, or give a configuration that begins with regional-."
  }
}

variable "spanner_processing_units" {
  description = "Spanner's capacity. 100 processing units, the least, cost as much as some 140 leases on Firestore, and bear many more."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition = (
      var.spanner_processing_units >= 100 && var.spanner_processing_units < 1000 && var.spanner_processing_units % 100 == 0
      || var.spanner_processing_units >= 1000 && var.spanner_processing_units % 1000 == 0
    )
    error_message = "spanner_processing_units is a multiple of 100 below 1000, or of 1000 from there on; the least is 100."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the store and the services. Where the store is lost, fencing tokens start from 1 again, and old leaders look new."
  type        = bool
  default     = true
  nullable    = false
}

variable "backup_retention_days" {
  description = "For how long a daily backup of the store is kept, in days."
  type        = number
  default     = 14
  nullable    = false

  validation {
    condition     = var.backup_retention_days >= 1 && var.backup_retention_days <= 98 && floor(var.backup_retention_days) == var.backup_retention_days
    error_message = "backup_retention_days is a whole number of days from 1 to 98, which is the most that Firestore keeps."
  }
}

variable "history_hours" {
  description = "For how long the events of an election can be read, in hours. Becomes REGENT_HISTORY."
  type        = number
  default     = 720
  nullable    = false

  validation {
    condition     = var.history_hours >= 1 && floor(var.history_hours) == var.history_hours
    error_message = "history_hours is a whole number of hours, 1 or more; 720 keeps 30 days."
  }
}

variable "topic_retention_hours" {
  description = "For how long Pub/Sub keeps messages for subscriptions that look back, in hours. Regent's own do not; 0 keeps none."
  type        = number
  default     = 24
  nullable    = false

  validation {
    condition     = var.topic_retention_hours >= 0 && var.topic_retention_hours <= 744 && floor(var.topic_retention_hours) == var.topic_retention_hours
    error_message = "topic_retention_hours is a whole number of hours from 0 to 744 (31 days); 0 keeps none."
  }
}

variable "topic_storage_regions" {
  description = "The regions in which Pub/Sub may keep messages; the regions that serve unless they are given."
  type        = list(string)
  default     = null

  validation {
    condition     = var.topic_storage_regions == null || try(length(var.topic_storage_regions) > 0 && alltrue([for r in var.topic_storage_regions : can(regex("^[a-z]+-[a-z]+[0-9]+$", r))]), false)
    error_message = "topic_storage_regions has to name regions such as europe-west1; leave it out for those that serve."
  }
}

# The service.

variable "stopped" {
  description = "Run no instance at all, as when the store is moved or restored. Leases run out meanwhile."
  type        = bool
  default     = false
  nullable    = false
}

variable "min_instances" {
  description = "How many instances each region has at least. They are paid for around the clock; 2 keep an update or a crash from being noticed."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.min_instances >= 1 && floor(var.min_instances) == var.min_instances
    error_message = "min_instances is a whole number, 1 or more: with none, nobody announces, and nobody sees a lease end."
  }
}

variable "max_instances" {
  description = "How many instances each region has at most. Each has a Pub/Sub subscription of its own."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_instances >= 1 && var.max_instances <= 1000 && floor(var.max_instances) == var.max_instances
    error_message = "max_instances is a whole number from 1 to 1000."
  }
  validation {
    condition     = var.max_instances >= var.min_instances
    error_message = "max_instances is below min_instances; raise the one or lower the other."
  }
}

variable "concurrency" {
  description = "How many requests one instance takes at a time. Each agent that waits or watches counts for as long as it does."
  type        = number
  default     = 1000
  nullable    = false

  validation {
    condition     = var.concurrency >= 1 && var.concurrency <= 1000 && floor(var.concurrency) == var.concurrency
    error_message = "concurrency is a whole number from 1 to 1000, which is the most that Cloud Run allows."
  }
}

variable "cpu" {
  description = "The CPUs of one instance. Less than one would be throttled, and renewals with it."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = contains([1, 2, 4, 8], var.cpu)
    error_message = "cpu is 1, 2, 4 or 8."
  }
}

variable "memory_mib" {
  description = "The memory of one instance, in MiB."
  type        = number
  default     = 512
  nullable    = false

  validation {
    condition     = var.memory_mib >= 512 && var.memory_mib <= 32768 && floor(var.memory_mib) == var.memory_mib
    error_message = "memory_mib is a whole number of MiB from 512, the least for an instance that keeps its CPU, to 32768."
  }
}

variable "request_timeout_seconds" {
  description = "For how long Cloud Run lets a request last, in seconds; streams too."
  type        = number
  default     = 900
  nullable    = false

  validation {
    condition     = var.request_timeout_seconds >= 60 && var.request_timeout_seconds <= 3600 && floor(var.request_timeout_seconds) == var.request_timeout_seconds
    error_message = "request_timeout_seconds is a whole number of seconds from 60 to 3600, which is the most that Cloud Run allows."
  }
}

variable "stream_limit_seconds" {
  description = "After how long Regent itself ends a stream, for its reader to resume, in seconds. Becomes REGENT_STREAM_LIMIT."
  type        = number
  default     = 840
  nullable    = false

  validation {
    condition     = var.stream_limit_seconds >= 1 && floor(var.stream_limit_seconds) == var.stream_limit_seconds
    error_message = "stream_limit_seconds is a whole number of seconds, 1 or more."
  }
  validation {
    condition     = var.stream_limit_seconds <= var.request_timeout_seconds - 30
    error_message = "stream_limit_seconds has to be at least 30 below request_timeout_seconds, or Cloud Run cuts streams off before Regent ends them; lower it, or raise the timeout."
  }
}

variable "cache_expiry_seconds" {
  description = "How old a read may be that does not ask for consistency=strong, in seconds. Becomes REGENT_CACHE_EXPIRY."
  type        = number
  default     = 5
  nullable    = false

  validation {
    condition     = var.cache_expiry_seconds >= 1 && var.cache_expiry_seconds <= 10 && floor(var.cache_expiry_seconds) == var.cache_expiry_seconds
    error_message = "cache_expiry_seconds is a whole number of seconds from 1 to 10."
  }
}

variable "ingress" {
  description = "From where the services can be reached, as Cloud Run names it. With a domain, INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER leaves only the way over the load balancer."
  type        = string
  default     = "INGRESS_TRAFFIC_ALL"
  nullable    = false

  validation {
    condition     = contains(["INGRESS_TRAFFIC_ALL", "INGRESS_TRAFFIC_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"], var.ingress)
    error_message = "ingress is not INGRESS_TRAFFIC_ALL, INGRESS_TRAFFIC_INTERNAL_ONLY or INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER; choose one of them."
  }
  validation {
    condition     = var.ingress != "INGRESS_TRAFFIC_INTERNAL_ONLY" || var.domain == null
    error_message = "ingress INGRESS_TRAFFIC_INTERNAL_ONLY keeps the load balancer of domain out; choose INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER, or give no domain."
  }
}

variable "domain" {
  description = "The host name under which a load balancer serves all regions, such as regent.example.com; none for no load balancer. Its DNS is yours to set."
  type        = string
  default     = null

  validation {
    condition     = var.domain == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.domain))
    error_message = "domain is a host name without https:// and without a path, such as regent.example.com."
  }
}

# Who may come in.

variable "invokers" {
  description = "Who may reach the service at all, as IAM members. What each may do there is for the policy to say."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.invokers) > 0
    error_message = "invokers is empty, so no agent could reach the service; name at least one, such as serviceAccount:agent@my-project.iam.gserviceaccount.com."
  }
  validation {
    condition     = length(setintersection(["allusers", "allauthenticatedusers"], [for m in var.invokers : lower(m)])) == 0
    error_message = "invokers holds allUsers or allAuthenticatedUsers, and would let anybody in; name service accounts, users or groups."
  }
  validation {
    condition = alltrue([for m in var.invokers : contains(["allusers", "allauthenticatedusers"], lower(m)) || can(regex(
      "^((user|serviceAccount|group):[^@: ]+@[^@: ]+\\.[^@: ]+|domain:[^@: ]+\\.[^@: ]+|principal(Set)?://iam\\.googleapis\\.com/[^ ]+)$", m
    ))])
    error_message = "invokers holds what is no IAM member; write user:E-MAIL, serviceAccount:E-MAIL, group:E-MAIL, domain:DOMAIN or principal://iam.googleapis.com/...."
  }
  validation {
    condition     = length(distinct(var.invokers)) == length(var.invokers)
    error_message = "invokers names a member twice; leave the second out."
  }
}

variable "policy" {
  description = "The text of the policy file, YAML: which principal has which role in which elections. What it does not grant is refused. The scheduler's grant is added. It is no secret; Secret Manager keeps it, so that it can be mounted and changed without a new revision."
  type        = string
  nullable    = false

  validation {
    condition     = try(length(yamldecode(var.policy).grants) > 0, false)
    error_message = "policy is no YAML document with a list of grants, and nobody would be let in; give the text of a policy file, such as file(\"policy.yaml\")."
  }
  validation {
    condition = !can(yamldecode(var.policy).grants) || alltrue([
      for g in try(yamldecode(var.policy).grants, []) :
      try(length(g.principals) > 0 && length(g.roles) > 0 && length(setsubtract(keys(g), ["principals", "roles", "elections", "candidates"])) == 0, false)
    ])
    error_message = "policy has a grant that Regent would refuse; each has principals and roles, neither empty, may have elections and candidates, and nothing else."
  }
  validation {
    condition = length(setsubtract(
      try(flatten([for g in yamldecode(var.policy).grants : g.roles]), []), ["candidate", "observer", "verifier", "scheduler", "operator", "admin"]
    )) == 0
    error_message = "policy grants a role that there is not; the roles are candidate, observer, verifier, scheduler, operator and admin."
  }
  validation {
    condition     = length(var.policy) <= 60000
    error_message = "policy is longer than Secret Manager keeps, 64 KiB; grant roles over prefixes of elections, such as jobs.*, instead of over each."
  }
}

variable "audience" {
  description = "For whom agents have their ID tokens made out, the same in all regions; https://DOMAIN, or else NAME.PROJECT_ID, unless it is given."
  type        = string
  default     = null

  validation {
    condition     = var.audience == null || can(regex("^[^, ]{3,256}$", var.audience))
    error_message = "audience is one audience of 3 to 256 characters without spaces and commas; leave it out for one made of the domain or the project."
  }
}

# The scheduler.

variable "tick_schedule" {
  description = "When the service is asked to do what is left to do, as a cron expression in UTC."
  type        = string
  default     = "* * * * *"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9*/,-]+( [0-9A-Za-z*/,-]+){4}$", var.tick_schedule))
    error_message = "tick_schedule is no cron expression of five fields; * * * * * is each minute."
  }
}

variable "scheduler_region" {
  description = "The region of the Cloud Scheduler job; the first of regions unless it is given, for not all have Cloud Scheduler."
  type        = string
  default     = null

  validation {
    condition     = var.scheduler_region == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.scheduler_region))
    error_message = "scheduler_region is no region; write one such as europe-west1, or leave it out."
  }
}

# Who is told, and when.

variable "notification_emails" {
  description = "E-mail addresses that are told of each alert. A notification channel is created for each."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for e in var.notification_emails : can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", e))])
    error_message = "notification_emails holds what is no e-mail address; write them as oncall@example.com."
  }
}

variable "notification_channels" {
  description = "Notification channels that exist already, such as a pager's, by their full names."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for c in var.notification_channels : can(regex("^projects/[^/ ]+/notificationChannels/[^/ ]+$", c))])
    error_message = "notification_channels holds what is no channel; write them as projects/PROJECT/notificationChannels/ID, as listed by: gcloud beta monitoring channels list."
  }
  validation {
    condition     = length(var.notification_channels) + length(var.notification_emails) > 0
    error_message = "notification_channels and notification_emails are both empty, and an alert would be heard by nobody; give at least one of either."
  }
}

variable "alert_thresholds" {
  description = "Beyond which values alerts fire: see the runbook for each."
  type = object({
    leaderless_seconds    = optional(number, 60)   # an election that somebody wants to lead has had no leader for longer
    flapping_elections    = optional(number, 0)    # more elections than this change hands over and over
    splitbrain_acts       = optional(number, 0)    # more acts than this, in 5 min, under a token that was no longer the newest
    contention_per_second = optional(number, 5)    # more attempts to lead than this were refused, on average of 5 min
    transition_seconds    = optional(number, 30)   # 1 % of the changes of leader within 10 min took longer
    unannounced_seconds   = optional(number, 60)   # an event has waited for longer to be announced
    error_ratio           = optional(number, 0.01) # a greater part of the requests within 5 min failed for the service's own fault
    silence_seconds       = optional(number, 300)  # no instance has reported anything for longer
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for k, v in var.alert_thresholds : v != null && try(v >= 0, false)])
    error_message = "alert_thresholds holds a negative one, which would always fire; give 0 or more, and leave out what shall keep its default."
  }
  validation {
    condition     = var.alert_thresholds.error_ratio < 1
    error_message = "alert_thresholds.error_ratio is a part of all requests, below 1; write 1 % as 0.01."
  }
  validation {
    condition     = alltrue([for s in [var.alert_thresholds.leaderless_seconds, var.alert_thresholds.transition_seconds, var.alert_thresholds.unannounced_seconds] : s >= 1])
    error_message = "alert_thresholds of leaderless_seconds, transition_seconds and unannounced_seconds are 1 or more; below, each ordinary change of leader would fire."
  }
  validation {
    condition     = var.alert_thresholds.silence_seconds >= 60 && var.alert_thresholds.silence_seconds % 60 == 0
    error_message = "alert_thresholds.silence_seconds is a multiple of 60, since metrics come a few times a minute; 300 is five minutes."
  }
}

variable "metric_names" {
  description = "How metrics are named where they arrive: otlp (as sent to telemetry.googleapis.com, with dots and without suffixes) or prometheus (as scraped from /metrics by a collector, with _total, _seconds and the like)."
  type        = string
  default     = "otlp"
  nullable    = false

  validation {
    condition     = contains(["otlp", "prometheus"], var.metric_names)
    error_message = "metric_names is neither otlp nor prometheus; choose otlp unless a collector scrapes /metrics."
  }
}

variable "trace_ratio" {
  description = "The part of all requests that are traced, unless whoever calls has decided."
  type        = number
  default     = 0.01
  nullable    = false

  validation {
    condition     = var.trace_ratio >= 0 && var.trace_ratio <= 1
    error_message = "trace_ratio is a part of all requests, from 0 to 1; write 1 % as 0.01."
  }
}

variable "uptime_check" {
  description = "Whether Cloud Monitoring asks /health/ready from outside. Needs Monitoring's service agent; see the runbook."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.uptime_check || var.ingress == "INGRESS_TRAFFIC_ALL"
    error_message = "uptime_check comes from outside, and ingress keeps it out; choose INGRESS_TRAFFIC_ALL, or leave the check out."
  }
}

variable "runbook_url" {
  description = "Where the people who are paged find the runbook; each alert points to its section."
  type        = string
  default     = "terraform/README.md"
  nullable    = false

  validation {
    condition     = can(regex("^[^# ]+$", var.runbook_url))
    error_message = "runbook_url is an address without spaces and without a #section, which each alert adds."
  }
}
