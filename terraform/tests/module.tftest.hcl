# The plan for each set of variables. The provider is a mock: nothing here calls Google Cloud.

mock_provider "google" {
  mock_resource "google_cloud_run_v2_service" {
    defaults = { uri = "https://regent-abc.a.run.app" }
  }
  mock_resource "google_service_account" {
    defaults = {
      email  = "regent-server@my-project.iam.gserviceaccount.com"
      member = "serviceAccount:regent-server@my-project.iam.gserviceaccount.com"
    }
  }
  mock_resource "google_project_iam_custom_role" {
    defaults = { name = "projects/my-project/roles/made_up" }
  }
  mock_resource "google_secret_manager_secret" {
    defaults = { id = "projects/my-project/secrets/regent-access" }
  }
  mock_resource "google_monitoring_notification_channel" {
    defaults = { name = "projects/my-project/notificationChannels/1" }
  }
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id          = "my-project"
  regions             = ["europe-west1"]
  image               = "europe-west1-docker.pkg.dev/my-project/regent/regent:v1.2.3"
  store               = "firestore"
  invokers            = ["serviceAccount:agent@my-project.iam.gserviceaccount.com", "group:agents@example.com"]
  access              = <<-YAML
    grants:
      - principals: [agent@my-project.iam.gserviceaccount.com]
        roles: [candidate]
        elections: ["*"]
  YAML
  notification_emails = ["oncall@example.com"]
}

run "on_firestore" {
  command = apply

  assert {
    condition     = output.store == "firestore:my-project/regent" && output.topic == "projects/my-project/topics/regent"
    error_message = "the store and the topic are not in the form of serve"
  }
  assert {
    condition     = output.url == "https://regent-abc.a.run.app" && output.agent_environment == { REGENT_SERVER = output.url, REGENT_AUDIENCE = output.audience } && output.audience == "regent.my-project"
    error_message = "the agent environment is wrong"
  }
  assert {
    condition     = length(google_firestore_database.main) == 1 && length(google_spanner_instance.main) + length(google_spanner_database.main) == 0
    error_message = "there is not exactly one store"
  }
  assert {
    condition     = google_firestore_database.main[0].delete_protection_state == "DELETE_PROTECTION_ENABLED" && google_firestore_database.main[0].point_in_time_recovery_enablement == "POINT_IN_TIME_RECOVERY_ENABLED"
    error_message = "the store is not protected"
  }
  assert {
    condition     = google_firestore_backup_schedule.daily[0].retention == "1209600s"
    error_message = "backups are not kept for 14 days"
  }
  assert {
    condition     = length(google_firestore_field.event["deleteAfter"].ttl_config) == 1 && length(google_firestore_field.event["requestedAt"].ttl_config) == 0
    error_message = "the one TTL field is not deleteAfter"
  }
  assert {
    condition     = google_firestore_field.segment[0].collection == "segments" && google_firestore_field.segment[0].field == "deleteAfter" && length(google_firestore_field.segment[0].ttl_config) == 1 && length(google_firestore_field.segment[0].index_config[0].indexes) == 0
    error_message = "trimmed segments of journals do not end by deleteAfter"
  }
  assert {
    condition     = google_firestore_field.event["unannounced"].index_config[0].indexes[*].query_scope == tolist(["COLLECTION", "COLLECTION_GROUP"])
    error_message = "the outbox cannot be queried in both scopes"
  }
  assert {
    condition     = google_firestore_field.event["requestedAt"].index_config[0].indexes[*].query_scope == tolist(["COLLECTION_GROUP"])
    error_message = "the history cannot be queried over all elections"
  }
  assert {
    condition     = length(google_firestore_field.event["deleteAfter"].index_config[0].indexes) == 0 && length(google_firestore_field.exempt) == 5
    error_message = "a field that is never queried has an index"
  }
  assert {
    condition     = google_firestore_index.outbox[0].query_scope == "COLLECTION_GROUP" && google_firestore_index.outbox[0].fields[*].field_path == tolist(["unannounced", "requestedAt"])
    error_message = "a look at the newest part of the outbox has no index"
  }
  assert {
    condition     = length(google_cloud_run_v2_service_iam_member.invoker) == 2 && alltrue([for b in google_cloud_run_v2_service_iam_member.invoker : b.role == "roles/run.invoker"])
    error_message = "not each invoker has exactly the invoker role"
  }
  assert {
    condition     = !can(output.settings.REGENT_PEERS)
    error_message = "there is a peer without peers"
  }
  assert {
    condition     = length(google_compute_backend_service.main) == 0 && output.load_balancer_address == null
    error_message = "there is a load balancer without a domain"
  }
  assert {
    condition     = length(google_monitoring_uptime_check_config.ready) == 0
    error_message = "there is an uptime check although uptime_check is off"
  }
}

run "peers" {
  command = apply

  variables {
    peers = {
      us = { url = "https://regent.us.example.com" }
      eu = { url = "https://regent.eu.example.com", audience = "regent-eu.my-project" }
    }
  }

  assert {
    condition     = output.settings.REGENT_PEERS == "eu=https://regent.eu.example.com,us=https://regent.us.example.com" && output.settings.REGENT_PEER_AUDIENCES == "eu=regent-eu.my-project,us=https://regent.us.example.com"
    error_message = "the peers are not as serve wants them"
  }
}

run "the_service" {
  command = apply

  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].resources[0].cpu_idle == false
    error_message = "an instance has no CPU between requests, and cannot announce"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].template[0].scaling[0].min_instance_count == 2
    error_message = "no instance is kept while there are no calls"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].scaling[0].scaling_mode == "AUTOMATIC"
    error_message = "a service that was stopped does not start again"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].template[0].timeout == "900s" && output.settings.REGENT_STREAM_LIMIT == "840s"
    error_message = "streams do not end before Cloud Run cuts them off"
  }
  assert {
    condition     = output.settings.REGENT_MAX_CONCURRENCY == tostring(google_cloud_run_v2_service.main["europe-west1"].template[0].max_instance_request_concurrency)
    error_message = "Regent does not know how many requests Cloud Run sends at a time, and long calls could take all"
  }
  assert {
    condition = (
      google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].startup_probe[0].http_get[0].path == "/health/ready"
      && google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].liveness_probe[0].http_get[0].path == "/health/live"
    )
    error_message = "the probes use a wrong path"
  }
  assert {
    condition = (
      google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].startup_probe[0].period_seconds
      * google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].startup_probe[0].failure_threshold == 240
    )
    error_message = "an instance is ended while it waits for its store, which takes 200 s at most; or the time is above Cloud Run's limit"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].custom_audiences == tolist([output.audience]) && output.settings.REGENT_AUTH_AUDIENCE == output.audience
    error_message = "Cloud Run and Regent disagree on the audience"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].deletion_protection && !google_cloud_run_v2_service.main["europe-west1"].invoker_iam_disabled
    error_message = "the service is not protected"
  }
  assert {
    condition     = google_secret_manager_secret_version.access.deletion_policy == "ABANDON"
    error_message = "a version of the access file is destroyed that instances may still be shown as the latest"
  }
  assert {
    condition = (
      "${google_cloud_run_v2_service.main["europe-west1"].template[0].containers[0].volume_mounts[0].mount_path}/${google_cloud_run_v2_service.main["europe-west1"].template[0].volumes[0].secret[0].items[0].path}"
      == output.settings.REGENT_ACCESS
    )
    error_message = "the access file is not where Regent looks for it"
  }
  assert {
    condition     = yamldecode(output.access).grants[1] == { principals = ["regent-scheduler@my-project.iam.gserviceaccount.com"], roles = ["scheduler"] }
    error_message = "the scheduler may not tick"
  }
  assert {
    condition = (
      google_cloud_scheduler_job.tick.http_target[0].uri == "https://regent-abc.a.run.app/v1/maintenance:tick"
      && google_cloud_scheduler_job.tick.http_target[0].http_method == "POST"
      && google_cloud_scheduler_job.tick.http_target[0].oidc_token[0].audience == output.audience
    )
    error_message = "the tick does not arrive"
  }
}

run "on_spanner" {
  command = apply

  variables {
    store            = "spanner"
    spanner_database = "restored"
    name             = "leads"
  }

  assert {
    condition     = output.store == "spanner:projects/my-project/instances/leads/databases/restored" && output.topic == "projects/my-project/topics/leads"
    error_message = "the store and the topic are not in the form of serve"
  }
  assert {
    condition     = length(google_firestore_database.main) + length(google_firestore_field.event) + length(google_firestore_field.exempt) + length(google_firestore_index.outbox) + length(google_project_iam_member.firestore) == 0
    error_message = "there is more than the one store"
  }
  assert {
    condition     = google_spanner_instance.main[0].config == "regional-europe-west1" && google_spanner_instance.main[0].processing_units == 100
    error_message = "the instance has another location or size"
  }
  assert {
    condition     = google_spanner_database.main[0].enable_drop_protection && google_spanner_database.main[0].deletion_protection
    error_message = "the store is not protected"
  }
  assert {
    condition     = google_spanner_database.main[0].version_retention_period == "1d"
    error_message = "the versions that renewals leave behind are kept for longer"
  }
  assert {
    condition     = length(google_spanner_database.main[0].ddl) > 5 && alltrue([for s in google_spanner_database.main[0].ddl : startswith(s, "CREATE ") && !strcontains(s, "--")])
    error_message = "the tables are not those of schema.sql"
  }
  assert {
    condition     = toset([for b in google_spanner_database_iam_member.server : b.database]) == toset(["restored"])
    error_message = "the right to write reaches beyond the database"
  }
}

run "behind_a_load_balancer" {
  command = apply

  variables {
    store           = "spanner"
    regions         = ["europe-west4", "europe-west3"]
    spanner_config  = "eur6"
    spanner_edition = "ENTERPRISE_PLUS"
    domain          = "regent.example.com"
    ingress         = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  }

  assert {
    condition     = output.url == "https://regent.example.com" && output.audience == "https://regent.example.com"
    error_message = "agents do not use the load balancer"
  }
  assert {
    condition     = keys(output.urls) == ["europe-west3", "europe-west4"] && length(google_compute_region_network_endpoint_group.main) == 2
    error_message = "not each region is behind the load balancer"
  }
  assert {
    condition     = length(google_cloud_run_v2_service_iam_member.invoker) == 4
    error_message = "not each invoker may call each region"
  }
  assert {
    condition     = google_pubsub_topic.events.message_storage_policy[0].allowed_persistence_regions == tolist(["europe-west4", "europe-west3"])
    error_message = "messages are kept in other regions"
  }
  assert {
    condition     = google_pubsub_topic.members[0].message_storage_policy == google_pubsub_topic.events.message_storage_policy
    error_message = "members are known in other regions"
  }
}

run "watched_from_outside" {
  command = apply

  variables {
    uptime_check = true
  }

  assert {
    condition     = google_monitoring_uptime_check_config.ready["europe-west1"].monitored_resource[0].labels.host == "regent-abc.a.run.app"
    error_message = "the check calls another host"
  }
  assert {
    condition     = google_cloud_run_v2_service_iam_member.uptime["europe-west1"].member == "serviceAccount:service-123456789012@gcp-sa-monitoring-notification.iam.gserviceaccount.com"
    error_message = "the check may not call the service"
  }
  assert {
    condition     = length(google_monitoring_alert_policy.unreachable) == 1
    error_message = "no notification channel is set"
  }
}

run "alerts" {
  command = apply

  variables {
    notification_channels = ["projects/my-project/notificationChannels/77"]
    alert_thresholds      = { leaderless_seconds = 45 }
  }

  assert {
    condition     = keys(google_monitoring_alert_policy.main) == ["approval-waits", "contention", "cut-off", "deposed", "errors", "flapping", "hand-over", "invalid-access", "journal-lag", "low-participation", "many-elections", "no-leader", "paused", "read-only", "silence", "slow-transition", "split-brain", "unannounced-events", "unverified-callers"]
    error_message = "an alert is missing"
  }
  assert {
    condition     = output.alerts["no-leader"].query == "max({\"regent.elections.leaderless\", \"job\"=\"regent\"}) > 45"
    error_message = "the threshold that was given is not the alert's"
  }
  assert {
    condition     = output.alerts["low-participation"].query == "min({\"regent.elections.participation\", \"job\"=\"regent\"}) < 0.5"
    error_message = "the alert fires while enough take part"
  }
  assert {
    condition     = output.alerts["read-only"].threshold == 0 && output.alerts["read-only"].seconds == 120
    error_message = "an election is read-only for minutes, and no alert fires"
  }
  assert {
    condition     = output.alerts["slow-transition"].threshold == 30
    error_message = "a threshold that was not given lost its default"
  }
  assert {
    condition     = alltrue([for p in google_monitoring_alert_policy.main : p.notification_channels == tolist(["projects/my-project/notificationChannels/77", "projects/my-project/notificationChannels/1"])])
    error_message = "an alert is not sent to all channels"
  }
  assert {
    condition     = alltrue([for k, p in google_monitoring_alert_policy.main : endswith(p.documentation[0].content, "cmd/regent/TROUBLESHOOTING.md#${k}")])
    error_message = "an alert does not link to its entry of the runbook"
  }
}

run "scraped_by_a_collector" {
  command = apply

  variables {
    metric_names = "prometheus"
  }

  assert {
    condition     = output.alerts["no-leader"].query == "max({\"regent_elections_leaderless_seconds\", \"job\"=\"regent\"}) > 60"
    error_message = "the names are not those of /metrics"
  }
  assert {
    condition     = strcontains(output.alerts["errors"].query, "{\"regent_lease_operations_total\", \"job\"=\"regent\", \"outcome\"=~")
    error_message = "the names are not those of /metrics"
  }
}

run "stopped_without_protection_of_the_services" {
  command = apply

  variables {
    stopped               = true
    deletion_protection   = false
    topic_retention_hours = 0
  }

  assert {
    condition     = google_firestore_database.main[0].deletion_policy == "ABANDON" && google_firestore_database.main[0].delete_protection_state == "DELETE_PROTECTION_ENABLED" && !google_cloud_run_v2_service.main["europe-west1"].deletion_protection
    error_message = "the services are protected, or the store is not"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].scaling[0].manual_instance_count == 0
    error_message = "an instance is still running"
  }
}

run "members_stay_at_their_instance" {
  command = plan

  variables {
    members = false
  }

  assert {
    condition     = length(google_pubsub_topic.members) + length(google_pubsub_topic_iam_member.members) == 0
    error_message = "there is a topic that nothing uses"
  }
  assert {
    condition     = output.settings.REGENT_MEMBERS == "none" && output.members_topic == "none"
    error_message = "an instance looks for a topic that is not there"
  }
}

run "keeps_the_limits_of_the_access_file" {
  command = plan

  variables {
    access = <<-YAML
      grants:
        - principals: [agent@my-project.iam.gserviceaccount.com]
          roles: [candidate]
          elections: ["*"]
          maxLeaseDuration: 5m
      limits:
        - principals: ["*"]
          renewals: 5
    YAML
  }

  assert {
    condition     = yamldecode(output.access).limits == [{ principals = ["*"], renewals = 5 }]
    error_message = "the mounted access file has other limits than were given"
  }
  assert {
    condition     = yamldecode(output.access).grants[0].maxLeaseDuration == "5m" && length(yamldecode(output.access).grants) == 2
    error_message = "the mounted access file has other grants than were given, and the scheduler's"
  }
}

run "asks_itself_through_the_load_balancer" {
  command = plan

  variables {
    domain  = "regent.example.com"
    ingress = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  }

  assert {
    condition     = output.settings.REGENT_AUTH_PROBE == "https://regent.example.com"
    error_message = "an instance cannot reach its run.app URL, so it does not notice that IAM is off"
  }
}

run "answers_no_call_without_proof_that_callers_are_checked" {
  command = plan

  variables {
    auth_probe_required = true
  }

  assert {
    condition     = output.settings.REGENT_AUTH_PROBE == "required"
    error_message = "an instance without proof answers"
  }
}

run "answers_no_call_without_proof_through_the_load_balancer" {
  command = plan

  variables {
    auth_probe_required = true
    domain              = "regent.example.com"
  }

  assert {
    condition     = output.settings.REGENT_AUTH_PROBE == "required,https://regent.example.com"
    error_message = "an instance without proof answers"
  }
}

run "verifies_callers_itself_behind_a_load_balancer" {
  command = plan

  variables {
    auth     = "oidc"
    invokers = []
    domain   = "regent.example.com"
  }

  assert {
    condition     = !contains(keys(output.settings), "REGENT_AUTH_PROBE")
    error_message = "serve does not start with a probe and without IAM"
  }
}

run "verifies_callers_itself" {
  command = plan

  variables {
    auth     = "oidc"
    invokers = []
  }

  assert {
    condition     = output.settings.REGENT_AUTH == "oidc" && output.settings.REGENT_AUTH_ISSUER == "https://accounts.google.com" && output.settings.REGENT_AUTH_AUDIENCE == output.audience
    error_message = "the service does not verify Google's tokens for its audience"
  }
  assert {
    condition     = google_cloud_run_v2_service.main["europe-west1"].invoker_iam_disabled && length(google_cloud_run_v2_service_iam_member.invoker) == 0
    error_message = "IAM stands before the service, and cuts the signatures off"
  }
}

run "verifies_callers_of_another_issuer_itself" {
  command = apply

  variables {
    auth        = "oidc"
    oidc_issuer = "https://issuer.example.com"
    invokers    = []
  }

  assert {
    condition     = output.settings.REGENT_AUTH_ISSUER == "https://issuer.example.com,https://accounts.google.com"
    error_message = "the service does not verify the tokens of both the agents and the scheduler"
  }
  assert {
    condition     = startswith(yamldecode(output.access).grants[1].principals[0], "https://accounts.google.com|")
    error_message = "the scheduler is not named by its subject, though no e-mail is believed"
  }
}

run "relies_on_iam_by_default" {
  command = plan

  assert {
    condition     = output.settings.REGENT_AUTH == "platform" && !contains(keys(output.settings), "REGENT_AUTH_ISSUER") && !contains(keys(output.settings), "REGENT_AUTH_PROBE") && !google_cloud_run_v2_service.main["europe-west1"].invoker_iam_disabled
    error_message = "Regent believes what IAM does not check"
  }
}

run "has_the_dashboard_and_no_other_door_by_default" {
  command = plan

  assert {
    condition     = output.settings.REGENT_UI == "true" && output.settings.REGENT_KUBERNETES == "false" && output.settings.REGENT_MCP == "false"
    error_message = "the doors are not those of regent serve"
  }
  assert {
    condition     = !contains(keys(output.settings), "REGENT_IAP_AUDIENCE") && output.iap_audience == null && length(google_compute_backend_service.people) == 0
    error_message = "there is an Identity-Aware Proxy that was not asked for"
  }
}

run "opens_the_doors" {
  command = plan

  variables {
    ui         = false
    kubernetes = true
    mcp        = true
  }

  assert {
    condition     = output.settings.REGENT_UI == "false" && output.settings.REGENT_KUBERNETES == "true" && output.settings.REGENT_MCP == "true"
    error_message = "the doors are not those that were asked for"
  }
}

run "shows_elections_by_name" {
  command = plan

  variables {
    metrics_elections = ["nightly", "deploy.*"]
  }

  assert {
    condition     = output.settings.REGENT_METRICS_ELECTIONS == "nightly,deploy.*"
    error_message = "the metrics do not show the elections that were asked for"
  }
}

run "signs_statements" {
  command = plan

  variables {
    statement_keys = ["projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/2", "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"]
  }

  assert {
    condition     = output.settings.REGENT_STATEMENT_KEY == "kms:projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/2,kms:projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"
    error_message = "statements are not signed with the keys that were given"
  }
  assert {
    condition     = contains(keys(google_project_service.main), "cloudkms.googleapis.com")
    error_message = "the API of the keys is not enabled"
  }
}

run "signs_people_in_by_a_name_of_their_own" {
  command = apply

  variables {
    regions       = ["europe-west1", "europe-west4"]
    events_region = "europe-west1"
    domain        = "regent.example.com"
    iap_domain    = "regent-ui.example.com"
    iap_audiences = ["/projects/123456789012/global/backendServices/7"]
  }

  assert {
    condition     = google_compute_backend_service.people[0].iap[0].enabled && length(google_compute_backend_service.people[0].backend) == 2 && length(google_compute_backend_service.main[0].iap) == 0
    error_message = "people do not pass the proxy, or agents do"
  }
  assert {
    condition     = google_compute_url_map.main[0].default_service == google_compute_backend_service.main[0].id && one(one(google_compute_url_map.main[0].host_rule).hosts) == "regent-ui.example.com" && one(google_compute_url_map.main[0].path_matcher).default_service == google_compute_backend_service.people[0].id
    error_message = "a name leads to the other's backend"
  }
  assert {
    condition     = length(google_compute_target_https_proxy.main[0].ssl_certificates) == 2 && google_compute_managed_ssl_certificate.people[0].managed[0].domains[0] == "regent-ui.example.com"
    error_message = "the name of people has no certificate"
  }
  assert {
    condition     = output.settings.REGENT_IAP_AUDIENCE == "/projects/123456789012/global/backendServices/7" && startswith(output.iap_audience, "/projects/123456789012/global/backendServices/")
    error_message = "the service does not believe the proxy, or the output is no audience"
  }
  assert {
    condition     = google_cloud_run_v2_service_iam_member.proxy["europe-west4"].member == "serviceAccount:service-123456789012@gcp-sa-iap.iam.gserviceaccount.com" && contains(local.services, "iap.googleapis.com")
    error_message = "the proxy cannot call the service"
  }
}

run "lets_no_proxy_pass_iam_where_iam_is_off" {
  command = plan

  variables {
    auth       = "oidc"
    invokers   = []
    domain     = "regent.example.com"
    iap_domain = "regent-ui.example.com"
  }

  assert {
    condition     = length(google_cloud_run_v2_service_iam_member.proxy) == 0 && google_compute_backend_service.people[0].iap[0].enabled
    error_message = "the proxy has a right that it does not need, or is not there"
  }
}

run "refuses_old_tls" {
  command = plan

  variables {
    domain = "regent.example.com"
  }

  assert {
    condition     = google_compute_ssl_policy.main[0].min_tls_version == "TLS_1_2" && google_compute_ssl_policy.main[0].profile == "MODERN"
    error_message = "the load balancer takes less than TLS 1.2"
  }
}
