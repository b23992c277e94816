variable "project_id" {
  description = "The project for all resources. Use a separate one: the right to receive events covers all subscriptions of a project."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be the id of a project, not its name or number: 6 to 30 of a-z, 0-9 and -, the first a letter, such as my-project-123."
  }
}

variable "name" {
  description = "Prefix of the names of all resources. Two deployments in one project need two names."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "name must have 3 to 20 of a-z, 0-9 and -, the first a letter and the last not -, because topics and service accounts are named after it; try regent."
  }
  validation {
    condition     = var.store != "spanner" || length(var.name) >= 4
    error_message = "name must have 4 characters or more with store spanner, whose instance is named after it; try regent."
  }
}

variable "regions" {
  description = "The serving regions. The first one hosts the scheduler, the registry and, unless set otherwise, the store."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.regions) > 0
    error_message = "regions is empty; name at least one, such as [\"europe-west1\"]."
  }
  validation {
    condition     = alltrue([for r in var.regions : can(regex("^[a-z]+-[a-z]+[0-9]+$", r))])
    error_message = "regions contains an invalid region; write regions, not zones or multi-regions, such as europe-west1."
  }
  validation {
    condition     = length(distinct(var.regions)) == length(var.regions)
    error_message = "regions names a region twice; each has one service, so remove the second."
  }
}

variable "image" {
  description = "Regent's container image, pinned by its digest or by a version that never moves. Its entry point must be the regent binary."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64}|:[a-zA-Z0-9_][a-zA-Z0-9._-]*)$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image must be pinned, so that the reviewed image runs: end it with @sha256:DIGEST or :VERSION, not with :latest."
  }
}

variable "labels" {
  description = "Labels for all resources that support them."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for k, v in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", k)) && can(regex("^[a-z0-9_-]{0,63}$", v))])
    error_message = "labels contains one that Google Cloud refuses; a key has 1 to 63 of a-z, 0-9, _ and -, the first a letter, and a value up to 63 of the same."
  }
}

# The store.

variable "store" {
  description = "The store of the leases: firestore (paid per write; cheaper up to about 140 leases renewed every 5 s) or spanner (paid per hour)."
  type        = string
  nullable    = false

  validation {
    condition     = contains(["firestore", "spanner"], var.store)
    error_message = "store must be firestore or spanner; choose one of them. Other stores need the disk of one machine, which Cloud Run does not have."
  }
}

variable "firestore_database" {
  description = "The id of the Firestore database to create."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = var.firestore_database == "(default)" || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.firestore_database))
    error_message = "firestore_database must be (default), or 4 to 63 of a-z, 0-9 and -, the first a letter and the last not -; try regent."
  }
}

variable "firestore_location" {
  description = "Location of the Firestore database: a region, or the multi-region nam5 or eur3; by default the first of regions. Later changes, also of regions, are ignored."
  type        = string
  default     = null

  validation {
    condition     = var.firestore_location == null || can(regex("^(nam5|eur3|nam7|[a-z]+-[a-z]+[0-9]+)$", var.firestore_location))
    error_message = "firestore_location is not a location of Firestore; give a region such as europe-west1, or the multi-region nam5 or eur3."
  }
}

variable "spanner_database" {
  description = "The id of the Spanner database."
  type        = string
  default     = "regent"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9_-]{0,28}[a-z0-9]$", var.spanner_database))
    error_message = "spanner_database must have 2 to 30 of a-z, 0-9, _ and -, the first a letter and the last a letter or a digit; try regent."
  }
}

variable "spanner_config" {
  description = "Spanner's instance configuration, such as regional-europe-west1, eur6 or nam-eur-asia1; by default regional-R for the first of regions, R. Later changes, also of regions, are ignored."
  type        = string
  default     = null

  validation {
    condition     = var.spanner_config == null || can(regex("^[a-z][a-z0-9-]*[a-z0-9]$", var.spanner_config))
    error_message = "spanner_config must be the last part of a configuration's name, such as regional-europe-west1 or eur6; list them with: gcloud spanner instance-configs list."
  }
}

variable "spanner_edition" {
  description = "Spanner's edition. More than one region needs ENTERPRISE_PLUS."
  type        = string
  default     = "STANDARD"
  nullable    = false

  validation {
    condition     = contains(["STANDARD", "ENTERPRISE", "ENTERPRISE_PLUS"], var.spanner_edition)
    error_message = "spanner_edition must be STANDARD, ENTERPRISE or ENTERPRISE_PLUS; choose one of them."
  }
  validation {
    condition     = var.spanner_config == null || startswith(coalesce(var.spanner_config, "regional-"), "regional-") || var.spanner_edition == "ENTERPRISE_PLUS"
    error_message = "spanner_edition must be ENTERPRISE_PLUS for a spanner_config of several regions; set it, or give a configuration that begins with regional-."
  }
}

variable "spanner_processing_units" {
  description = "Spanner's capacity. 100 processing units, the minimum, cost as much as some 140 leases on Firestore, and support many more."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition = (
      var.spanner_processing_units >= 100 && var.spanner_processing_units < 1000 && var.spanner_processing_units % 100 == 0
      || var.spanner_processing_units >= 1000 && var.spanner_processing_units % 1000 == 0
    )
    error_message = "spanner_processing_units must be a multiple of 100 below 1000, or of 1000 from there on; the least is 100."
  }
}

# Each renewal leaves a version of its row behind, so seven days of many leases are much storage.
variable "spanner_version_retention" {
  description = "How far back the Spanner database can be read, beside its daily backups, in hours or days: 1h to 7d."
  type        = string
  default     = "1d"
  nullable    = false

  validation {
    condition     = can(regex("^([1-9][0-9]?|1[0-5][0-9]|16[0-8])h$|^[1-7]d$", var.spanner_version_retention))
    error_message = "spanner_version_retention must be from 1h to 168h or from 1d to 7d, Spanner's limits; try 1d."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the services. The store is always protected: see README.md."
  type        = bool
  default     = true
  nullable    = false
}

variable "backup_retention_days" {
  description = "How long a daily backup of the store is kept, in days."
  type        = number
  default     = 14
  nullable    = false

  validation {
    condition     = var.backup_retention_days >= 1 && var.backup_retention_days <= 98 && floor(var.backup_retention_days) == var.backup_retention_days
    error_message = "backup_retention_days must be a whole number of days from 1 to 98, Firestore's limit."
  }
}

variable "history_hours" {
  description = "How long the events of an election can be read, in hours. Sets REGENT_HISTORY."
  type        = number
  default     = 720
  nullable    = false

  validation {
    condition     = var.history_hours >= 1 && var.history_hours <= 876000 && floor(var.history_hours) == var.history_hours
    error_message = "history_hours must be a whole number of hours, 1 or more and 876000 at most; 720 keeps 30 days."
  }
}

variable "topic_retention_hours" {
  description = "How long Pub/Sub keeps messages for subscriptions that seek back, in hours. Regent's own do not; 0 keeps none."
  type        = number
  default     = 24
  nullable    = false

  validation {
    condition     = var.topic_retention_hours >= 0 && var.topic_retention_hours <= 744 && floor(var.topic_retention_hours) == var.topic_retention_hours
    error_message = "topic_retention_hours must be a whole number of hours from 0 to 744 (31 days); 0 keeps none."
  }
}

variable "members" {
  description = "Whether instances tell each other, over a topic of its own, which members are present and which leases were renewed. Without, each instance knows the members at itself only: with several instances, an election with a quorum may find none and become read-only."
  type        = bool
  default     = true
  nullable    = false
}

variable "peers" {
  description = "Other Regents by name, whose leases candidates here may name with via, such as those of its regions for a global one. Regent asks them with its service account's identity, which must be among their invokers and have a grant in their access file: observer for the elections. Without an audience, it is the URL."
  type        = map(object({ url = string, audience = optional(string) }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name, p in var.peers : can(regex("^[A-Za-z0-9._@:-]{1,64}$", name))])
    error_message = "peers contains a name that candidates cannot give; it has 1 to 64 of A-Z, a-z, 0-9 and ._@:-, such as eu."
  }
  validation {
    condition     = alltrue([for p in var.peers : can(regex("^https://[^,?# ]+$", p.url)) && (p.audience == null || can(regex("^[^, ]+$", p.audience)))])
    error_message = "peers contains a url that is not https://HOST, or an audience with a comma or a space; give the output url of that Regent, and its output audience."
  }
}

variable "topic_storage_regions" {
  description = "The regions in which Pub/Sub may keep messages; by default the serving regions."
  type        = list(string)
  default     = null

  validation {
    condition     = var.topic_storage_regions == null || try(length(var.topic_storage_regions) > 0 && alltrue([for r in var.topic_storage_regions : can(regex("^[a-z]+-[a-z]+[0-9]+$", r))]), false)
    error_message = "topic_storage_regions must name regions such as europe-west1; omit it for the serving regions."
  }
}

variable "events_region" {
  description = "The region whose Pub/Sub endpoint all instances publish through. Needed with several regions if a subscriber counts on the order of an election's events: Pub/Sub orders them only among what one region was sent. While that region's Pub/Sub is unavailable, events wait. By default each instance publishes in its own region."
  type        = string
  default     = null

  validation {
    condition     = var.events_region == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.events_region))
    error_message = "events_region must be a region such as europe-west1; omit it unless there are several serving regions."
  }
  validation {
    condition     = var.events_region == null || try(contains(coalesce(var.topic_storage_regions, var.regions), var.events_region), true)
    error_message = "events_region must be one in which Pub/Sub may keep messages; choose one of topic_storage_regions, or of regions."
  }
}

# The service.

variable "stopped" {
  description = "Run no instance, for example while the store is moved or restored. Leases expire meanwhile."
  type        = bool
  default     = false
  nullable    = false
}

variable "min_instances" {
  description = "Minimum number of instances per region. They are paid for around the clock; with 2, updates and crashes go unnoticed."
  type        = number
  default     = 2
  nullable    = false

  validation {
    condition     = var.min_instances >= 1 && floor(var.min_instances) == var.min_instances
    error_message = "min_instances must be a whole number, 1 or more: without an instance no event is announced, and no expiry is recorded."
  }
}

variable "max_instances" {
  description = "Maximum number of instances per region. Each has its own Pub/Sub subscription."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_instances >= 1 && var.max_instances <= 1000 && floor(var.max_instances) == var.max_instances
    error_message = "max_instances must be a whole number from 1 to 1000."
  }
  validation {
    condition     = var.max_instances >= var.min_instances
    error_message = "max_instances is below min_instances; raise the one or lower the other."
  }
}

variable "concurrency" {
  description = "How many requests one instance handles at a time. Each waiting or watching agent counts as one."
  type        = number
  default     = 1000
  nullable    = false

  validation {
    condition     = var.concurrency >= 2 && var.concurrency <= 1000 && floor(var.concurrency) == var.concurrency
    error_message = "concurrency must be a whole number from 2 to 1000, Cloud Run's limit; with 1, no agent could wait or watch."
  }
}

variable "cpu" {
  description = "The CPUs of one instance. Less than one would be throttled, and delay renewals."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = contains([1, 2, 4, 8], var.cpu)
    error_message = "cpu must be 1, 2, 4 or 8."
  }
}

variable "memory_mib" {
  description = "The memory of one instance, in MiB."
  type        = number
  default     = 512
  nullable    = false

  validation {
    condition     = var.memory_mib >= 512 && var.memory_mib <= 32768 && floor(var.memory_mib) == var.memory_mib
    error_message = "memory_mib must be a whole number of MiB from 512, the minimum for an instance that keeps its CPU, to 32768."
  }
  validation {
    condition     = var.cpu < 4 || var.memory_mib >= 512 * var.cpu
    error_message = "memory_mib is too little for so many CPUs, of which Cloud Run gives 4 only with 2048 MiB and 8 with 4096; raise it, or lower cpu."
  }
  validation {
    condition     = var.memory_mib <= lookup({ "1" = 4096, "2" = 8192, "4" = 16384 }, tostring(var.cpu), 32768)
    error_message = "memory_mib is too much for so few CPUs: Cloud Run gives more than 4096 MiB only with 2 CPUs, 8192 with 4 and 16384 with 8; lower it, or raise cpu."
  }
}

variable "request_timeout_seconds" {
  description = "Cloud Run's timeout of a request or stream, in seconds."
  type        = number
  default     = 900
  nullable    = false

  validation {
    condition     = var.request_timeout_seconds >= 90 && var.request_timeout_seconds <= 3600 && floor(var.request_timeout_seconds) == var.request_timeout_seconds
    error_message = "request_timeout_seconds must be a whole number of seconds from 90 to 3600, Cloud Run's limit; below, it would cut off calls that wait for a minute."
  }
}

variable "stream_limit_seconds" {
  description = "After how many seconds Regent itself ends a stream, for its reader to resume. Sets REGENT_STREAM_LIMIT."
  type        = number
  default     = 840
  nullable    = false

  validation {
    condition     = var.stream_limit_seconds >= 1 && floor(var.stream_limit_seconds) == var.stream_limit_seconds
    error_message = "stream_limit_seconds must be a whole number of seconds, 1 or more."
  }
  validation {
    condition     = var.stream_limit_seconds <= var.request_timeout_seconds - 30
    error_message = "stream_limit_seconds must be at least 30 below request_timeout_seconds, or Cloud Run cuts streams off before Regent ends them; lower it, or raise the timeout."
  }
}

variable "cache_expiry_seconds" {
  description = "How old a read without consistency=strong may be, in seconds. Sets REGENT_CACHE_EXPIRY."
  type        = number
  default     = 5
  nullable    = false

  validation {
    condition     = var.cache_expiry_seconds >= 1 && var.cache_expiry_seconds <= 10 && floor(var.cache_expiry_seconds) == var.cache_expiry_seconds
    error_message = "cache_expiry_seconds must be a whole number of seconds from 1 to 10."
  }
}

variable "ingress" {
  description = "Cloud Run's ingress setting. With a domain, INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER allows only requests through the load balancer."
  type        = string
  default     = "INGRESS_TRAFFIC_ALL"
  nullable    = false

  validation {
    condition     = contains(["INGRESS_TRAFFIC_ALL", "INGRESS_TRAFFIC_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"], var.ingress)
    error_message = "ingress must be INGRESS_TRAFFIC_ALL, INGRESS_TRAFFIC_INTERNAL_ONLY or INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER; choose one of them."
  }
  validation {
    condition     = var.ingress != "INGRESS_TRAFFIC_INTERNAL_ONLY" || var.domain == null
    error_message = "ingress INGRESS_TRAFFIC_INTERNAL_ONLY blocks the load balancer of domain; choose INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER, or give no domain."
  }
}

variable "domain" {
  description = "The host name of a load balancer for all regions, such as regent.example.com; none for no load balancer. You set its DNS record."
  type        = string
  default     = null

  validation {
    condition     = var.domain == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.domain))
    error_message = "domain must be a host name without https:// and without a path, such as regent.example.com."
  }
}

# Doors.

variable "ui" {
  description = "Whether the service has the dashboard, at /ui. The access file decides what a visitor sees there and may do."
  type        = bool
  default     = true
  nullable    = false
}

variable "kubernetes" {
  description = "Whether the service also serves Leases to kubectl and Kubernetes clients, below /apis."
  type        = bool
  default     = false
  nullable    = false
}

variable "mcp" {
  description = "Whether the service also serves tools for language models, at /mcp."
  type        = bool
  default     = false
  nullable    = false
}

variable "iap_domain" {
  description = "A second host name of the load balancer, for people with a browser, behind Identity-Aware Proxy, such as regent-ui.example.com; none for no proxy. Agents keep to domain. You set its DNS record, and say who may pass the proxy: see README.md."
  type        = string
  default     = null

  validation {
    condition     = var.iap_domain == null || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.iap_domain))
    error_message = "iap_domain must be a host name without https:// and without a path, such as regent-ui.example.com."
  }
  validation {
    condition     = var.iap_domain == null || var.domain != null && var.domain != var.iap_domain
    error_message = "iap_domain is a second name of the load balancer; give domain as well, another one, because agents do not pass Identity-Aware Proxy."
  }
}

variable "iap_audiences" {
  description = "The audiences of Identity-Aware Proxy whose assertions the service accepts: the output iap_audience, once it is known. Until then people who have passed the proxy are refused."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for a in var.iap_audiences : can(regex("^/projects/[0-9]+/[^, ]+$", a))])
    error_message = "iap_audiences contains something else; write /projects/NUMBER/global/backendServices/ID, with the number of the project, as the output iap_audience has it."
  }
}

# Access.

variable "auth" {
  description = "What verifies callers: platform (Cloud Run's IAM, which admits the invokers) or oidc (Regent itself, which admits every token of oidc_issuer for the audience; Cloud Run lets every call through to it)."
  type        = string
  default     = "platform"
  nullable    = false

  validation {
    condition     = contains(["platform", "oidc"], var.auth)
    error_message = "auth must be platform or oidc; choose platform unless your agents have tokens of another issuer than Google."
  }
}

variable "auth_probe_required" {
  description = "With auth platform, answer no call before the instance has seen that Cloud Run refuses one without a credential, however long that takes. Otherwise it waits 10 s. The service must reach its own URL: its domain, or its run.app URL if ingress lets it."
  type        = bool
  default     = false
  nullable    = false
}

variable "oidc_issuer" {
  description = "With auth oidc, the issuer of the agents' credentials, as their iss has it. With another one than Google the access file names principals as ISSUER|SUBJECT."
  type        = string
  default     = "https://accounts.google.com"
  nullable    = false

  validation {
    condition     = can(regex("^https://[^ ,|]+$", var.oidc_issuer))
    error_message = "oidc_issuer must be the URL of one issuer, such as https://accounts.google.com or https://token.actions.githubusercontent.com."
  }
  validation {
    condition     = var.auth == "oidc" || var.oidc_issuer == "https://accounts.google.com"
    error_message = "oidc_issuer is for auth oidc; Cloud Run's IAM takes Google's tokens only. Set auth too, or omit it."
  }
}

variable "invokers" {
  description = "With auth platform, the IAM members that may call the service. The access file says what each may do."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.invokers) > 0 || var.auth == "oidc"
    error_message = "invokers is empty, so no agent could reach the service; name at least one, such as serviceAccount:agent@my-project.iam.gserviceaccount.com."
  }
  validation {
    condition     = length(var.invokers) == 0 || var.auth != "oidc"
    error_message = "invokers has no effect with auth oidc, where Regent itself verifies callers; omit it, and name the callers in the access file."
  }
  validation {
    condition     = length(setintersection(["allusers", "allauthenticatedusers"], [for m in var.invokers : lower(m)])) == 0
    error_message = "invokers contains allUsers or allAuthenticatedUsers, which would admit every caller; name service accounts, users or groups."
  }
  validation {
    condition = alltrue([for m in var.invokers : contains(["allusers", "allauthenticatedusers"], lower(m)) || can(regex(
      "^((user|serviceAccount|group):[^@: ]+@[^@: ]+\\.[^@: ]+|domain:[^@: ]+\\.[^@: ]+|principal(Set)?://iam\\.googleapis\\.com/[^ ]+)$", m
    ))])
    error_message = "invokers contains an invalid IAM member; write user:E-MAIL, serviceAccount:E-MAIL, group:E-MAIL, domain:DOMAIN or principal://iam.googleapis.com/...."
  }
  validation {
    condition     = length(distinct(var.invokers)) == length(var.invokers)
    error_message = "invokers names a member twice; remove the second."
  }
}

variable "access" {
  description = "The text of the access file, in YAML: which principal has which role in which elections. Everything else is refused. The scheduler's grant is added. It is not secret; it is kept in Secret Manager so that it can be mounted and changed without a new revision."
  type        = string
  nullable    = false

  validation {
    condition     = try(length(yamldecode(var.access).grants) > 0, false)
    error_message = "access is not a YAML document with a list of grants, so no caller would be admitted; give the text of an access file, such as file(\"access.yaml\")."
  }
  validation {
    condition = !can(yamldecode(var.access).grants) || alltrue([
      for g in try(yamldecode(var.access).grants, []) :
      try(length(g.principals) > 0 && length(g.roles) > 0 && length(setsubtract(keys(g), ["principals", "roles", "elections", "candidates", "maxLeaseDuration"])) == 0, false)
    ])
    error_message = "access has a grant that Regent would refuse; each has principals and roles, neither empty, optionally elections, candidates and maxLeaseDuration, and nothing else."
  }
  validation {
    condition = length(setsubtract(
      try(flatten([for g in yamldecode(var.access).grants : g.roles]), []), ["candidate", "observer", "verifier", "scheduler", "halter", "operator", "admin"]
    )) == 0
    error_message = "access grants an unknown role; the roles are candidate, observer, verifier, scheduler, halter, operator and admin."
  }
  validation {
    condition     = try(length(setsubtract(keys(yamldecode(var.access)), ["grants", "limits"])) == 0, true)
    error_message = "access has a key that Regent would refuse; it has grants, optionally limits, and nothing else."
  }
  validation {
    condition = try(yamldecode(var.access).limits, null) == null || try(alltrue([
      for l in yamldecode(var.access).limits :
      length(l.principals) > 0 && length(setsubtract(keys(l), ["principals", "renewals", "campaigns", "reads", "waiters", "watchers", "elections"])) == 0
    ]), false)
    error_message = "access has limits that Regent would refuse; each has principals, some of renewals, campaigns, reads, waiters, watchers and elections, and nothing else."
  }
  validation {
    condition = var.auth != "oidc" || try(alltrue([
      for g in yamldecode(var.access).grants : !contains(g.principals, "*") || length(setsubtract(g.roles, ["observer"])) == 0
    ]), true)
    error_message = "access lets everyone who has a credential of the issuer (\"*\") do more than look, and with auth oidc that may be every Google account; name the principals, or give only the role observer."
  }
  validation {
    condition     = length(var.access) <= 60000
    error_message = "access is longer than Secret Manager's limit of 64 KiB; grant roles over prefixes of elections, such as jobs.*, instead of over each."
  }
}

variable "audience" {
  description = "The audience of the agents' ID tokens, the same in all regions; by default https://DOMAIN, or else NAME.PROJECT_ID."
  type        = string
  default     = null

  validation {
    condition     = var.audience == null || can(regex("^[^, ]{3,256}$", var.audience))
    error_message = "audience must be one audience of 3 to 256 characters without spaces and commas; omit it for one derived from the domain or the project."
  }
}

# The scheduler.

# While an instance runs it does by itself what a tick does, but for retirements. So the schedule bounds how late things come after all
# instances have slept or died, and a retirement is due after an hour at the earliest. A tick reads what is held or due, and nothing else.
variable "tick_schedule" {
  description = "When the scheduler ticks the service to do overdue work, as a cron expression in UTC. Five minutes are how late the end of a lease is recorded, and an election retired, if no instance runs."
  type        = string
  default     = "*/5 * * * *"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9*/,-]+( [0-9A-Za-z*/,-]+){4}$", var.tick_schedule))
    error_message = "tick_schedule must be a cron expression of five fields; * * * * * is each minute."
  }
}

variable "scheduler_region" {
  description = "The region of the Cloud Scheduler job, which not all regions offer; by default the first of regions."
  type        = string
  default     = null

  validation {
    condition     = var.scheduler_region == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", var.scheduler_region))
    error_message = "scheduler_region is not a region; write one such as europe-west1, or omit it."
  }
}

# Alerts and telemetry.

variable "notification_emails" {
  description = "E-mail addresses that get each alert. A notification channel is created for each."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for e in var.notification_emails : can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", e))])
    error_message = "notification_emails contains an invalid e-mail address; write them as oncall@example.com."
  }
}

variable "notification_channels" {
  description = "Full names of existing notification channels, such as a pager's."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for c in var.notification_channels : can(regex("^projects/[^/ ]+/notificationChannels/[^/ ]+$", c))])
    error_message = "notification_channels contains an invalid channel; write them as projects/PROJECT/notificationChannels/ID, as listed by: gcloud beta monitoring channels list."
  }
  validation {
    condition     = length(var.notification_channels) + length(var.notification_emails) > 0
    error_message = "notification_channels and notification_emails are both empty, so no alert would reach a person; give at least one of either."
  }
}

variable "alert_thresholds" {
  description = "The thresholds of the alerts: see cmd/regent/TROUBLESHOOTING.md for each."
  type = object({
    leaderless_seconds    = optional(number, 60)   # an election with candidates has had no leader for longer
    flapping_elections    = optional(number, 0)    # more elections than this change their leader repeatedly
    elections_per_hour    = optional(number, 1)    # an election has had more grants than this within an hour; 6: never
    splitbrain_acts       = optional(number, 0)    # more acts than this, in 5 min, under a token that was no longer the newest
    deposed_leaders       = optional(number, 0)    # more leaders than this, in 10 min, were no good by their policy
    approval_seconds      = optional(number, 900)  # an election has waited for an approval for longer
    paused_seconds        = optional(number, 3600) # an election has been paused for longer
    unfinished_handovers  = optional(number, 0)    # more hand-overs than this ran out of time within 10 min
    journal_lag_entries   = optional(number, 1000) # a follower of a journal has been more entries behind for 5 min
    readonly_seconds      = optional(number, 120)  # an election has been read-only, for want of a quorum, for longer
    participation         = optional(number, 0.5)  # a lower part of an election's electorate, or members, took part for 5 min
    contention_per_second = optional(number, 5)    # more attempts to lead than this were refused, on average of 5 min
    transition_seconds    = optional(number, 30)   # 1 % of the changes of leader within 10 min took longer
    unannounced_seconds   = optional(number, 60)   # an event has waited longer to be announced
    error_ratio           = optional(number, 0.01) # a larger ratio of requests failed within 5 min because of the service
    silence_seconds       = optional(number, 300)  # no instance has reported a metric for longer
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for k, v in var.alert_thresholds : v != null && try(v >= 0, false)])
    error_message = "alert_thresholds contains a negative one, which would always fire; give 0 or more, and omit those that keep their default."
  }
  validation {
    condition     = var.alert_thresholds.error_ratio < 1
    error_message = "alert_thresholds.error_ratio must be a ratio of all requests, below 1; write 1 % as 0.01."
  }
  validation {
    condition     = var.alert_thresholds.participation <= 1
    error_message = "alert_thresholds.participation must be a part of the members, from 0 to 1; write 50 % as 0.5, and 0 for no alert."
  }
  validation {
    condition     = contains([1, 2, 3, 4, 5, 6], var.alert_thresholds.elections_per_hour)
    error_message = "alert_thresholds.elections_per_hour must be a whole number from 1 to 6; with 6 the alert never fires, for instances count no further."
  }
  validation {
    condition     = alltrue([for s in [var.alert_thresholds.leaderless_seconds, var.alert_thresholds.transition_seconds, var.alert_thresholds.unannounced_seconds] : s >= 1])
    error_message = "alert_thresholds of leaderless_seconds, transition_seconds and unannounced_seconds must be 1 or more; below, each ordinary change of leader would fire."
  }
  validation {
    condition     = alltrue([for s in [var.alert_thresholds.silence_seconds, var.alert_thresholds.readonly_seconds] : s >= 60 && s % 60 == 0])
    error_message = "alert_thresholds of silence_seconds and readonly_seconds must be multiples of 60, because metrics arrive a few times a minute; 300 is five minutes."
  }
}

variable "metrics_elections" {
  description = "The elections that metrics show by name: names, and beginnings of names with a *, such as deploy.*; the first 200 of them. Each costs four series per instance, and one with seats five."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for e in var.metrics_elections : can(regex("^([a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?|([a-z0-9][a-z0-9._-]{0,127})?[*])$", e))])
    error_message = "metrics_elections contains what is neither an election's name nor the beginning of names and a *, such as deploy.*."
  }
}

variable "statement_keys" {
  description = "Versions of Cloud KMS keys (EC_SIGN_P256_SHA256 or EC_SIGN_ED25519) for signed statements; the first signs, all are published. Give the server's service account roles/cloudkms.signerVerifier on them."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for k in var.statement_keys : can(regex("^projects/[^/,]+/locations/[^/,]+/keyRings/[^/,]+/cryptoKeys/[^/,]+/cryptoKeyVersions/[0-9]+$", k))])
    error_message = "statement_keys contains what is not a key's version: projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/N."
  }
}

variable "metric_names" {
  description = "The form of the metrics' names where they arrive: otlp (as sent to telemetry.googleapis.com, with dots and without suffixes) or prometheus (as scraped from /metrics by a collector, with _total, _seconds and the like)."
  type        = string
  default     = "otlp"
  nullable    = false

  validation {
    condition     = contains(["otlp", "prometheus"], var.metric_names)
    error_message = "metric_names must be otlp or prometheus; choose otlp unless a collector scrapes /metrics."
  }
}

variable "trace_ratio" {
  description = "The ratio of requests that are traced, whatever their callers have decided: Cloud Run decides in their place."
  type        = number
  default     = 0.01
  nullable    = false

  validation {
    condition     = var.trace_ratio >= 0 && var.trace_ratio <= 1
    error_message = "trace_ratio must be a ratio of all requests, from 0 to 1; write 1 % as 0.01."
  }
}

variable "uptime_check" {
  description = "Whether Cloud Monitoring checks /health/ready from outside. Needs Monitoring's service agent: see cmd/regent/TROUBLESHOOTING.md#unreachable."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.uptime_check || var.ingress == "INGRESS_TRAFFIC_ALL"
    error_message = "uptime_check comes from outside, and ingress blocks it; choose INGRESS_TRAFFIC_ALL, or omit the check."
  }
}

variable "runbook_url" {
  description = "The address of the runbook; each alert links to its entry."
  type        = string
  default     = "cmd/regent/TROUBLESHOOTING.md"
  nullable    = false

  validation {
    condition     = can(regex("^[^# ]+$", var.runbook_url))
    error_message = "runbook_url must be an address without spaces and without a #section, which each alert adds."
  }
}
