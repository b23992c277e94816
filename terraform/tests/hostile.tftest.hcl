# Each variable refuses harmful and impossible values. test/terraform checks the messages.

mock_provider "google" {}

variables {
  project_id          = "my-project"
  regions             = ["europe-west1"]
  image               = "europe-west1-docker.pkg.dev/my-project/regent/regent:v1.2.3"
  store               = "firestore"
  invokers            = ["serviceAccount:agent@my-project.iam.gserviceaccount.com"]
  access              = "grants: [{principals: [a@example.com], roles: [observer], elections: ['*']}]"
  notification_emails = ["oncall@example.com"]
}

run "invalid_names" {
  command = plan
  variables {
    project_id  = "My Project"
    name        = "Regent"
    regions     = []
    image       = "regent:latest"
    labels      = { "Team" = "x" }
    runbook_url = "https://example.com/runbook#here"
    domain      = "https://regent.example.com/"
    audience    = "one, two"
  }
  expect_failures = [var.project_id, var.name, var.regions, var.image, var.labels, var.runbook_url, var.domain, var.audience]
}

run "invalid_store" {
  command = plan
  variables {
    store                     = "file"
    firestore_database        = "DB"
    firestore_location        = "EU"
    spanner_database          = "Regent"
    spanner_config            = "eur6"
    spanner_edition           = "STANDARD"
    spanner_processing_units  = 150
    spanner_version_retention = "8d"
    backup_retention_days     = 0
    history_hours             = 0
    topic_retention_hours     = -1
    topic_storage_regions     = []
  }
  expect_failures = [
    var.store, var.firestore_database, var.firestore_location, var.spanner_database, var.spanner_edition, var.spanner_processing_units, var.spanner_version_retention,
    var.backup_retention_days, var.history_hours, var.topic_retention_hours, var.topic_storage_regions,
  ]
}

run "invalid_configuration" {
  command = plan
  variables {
    spanner_config = "projects/p/instanceConfigs/eur6"
  }
  expect_failures = [var.spanner_config]
}

run "invalid_service" {
  command = plan
  variables {
    min_instances           = 0
    concurrency             = 1
    cpu                     = 0.5
    request_timeout_seconds = 4000
    cache_expiry_seconds    = 11
    ingress                 = "all"
    tick_schedule           = "every minute"
    scheduler_region        = "EU"
    trace_ratio             = 2
  }
  expect_failures = [
    var.min_instances, var.concurrency, var.cpu, var.request_timeout_seconds,
    var.cache_expiry_seconds, var.ingress, var.tick_schedule, var.scheduler_region, var.trace_ratio,
  ]
}

# Validations that use other variables do not run while one of these fails.
run "out_of_bounds" {
  command = plan
  variables {
    max_instances         = 1001
    memory_mib            = 128
    stream_limit_seconds  = 0
    spanner_edition       = "GOLD"
    notification_channels = ["pager"]
  }
  expect_failures = [var.max_instances, var.memory_mib, var.stream_limit_seconds, var.spanner_edition, var.notification_channels]
}

run "blocked_uptime_check" {
  command = plan
  variables {
    ingress      = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    uptime_check = true
  }
  expect_failures = [var.uptime_check]
}

run "contradictions" {
  command = plan
  variables {
    min_instances           = 3
    max_instances           = 2
    request_timeout_seconds = 300
    stream_limit_seconds    = 300
    ingress                 = "INGRESS_TRAFFIC_INTERNAL_ONLY"
    domain                  = "regent.example.com"
    notification_emails     = []
  }
  expect_failures = [var.max_instances, var.stream_limit_seconds, var.ingress, var.notification_channels]
}

run "all_users_invoke" {
  command = plan
  variables {
    invokers = ["allUsers"]
  }
  expect_failures = [var.invokers]
}

run "all_authenticated_users_invoke" {
  command = plan
  variables {
    invokers = ["serviceAccount:agent@my-project.iam.gserviceaccount.com", "allAuthenticatedUsers"]
  }
  expect_failures = [var.invokers]
}

run "no_invokers" {
  command = plan
  variables {
    invokers = []
    access   = "grants: []"
  }
  expect_failures = [var.invokers, var.access]
}

run "invalid_telemetry" {
  command = plan
  variables {
    notification_emails = ["nobody"]
    alert_thresholds    = { leaderless_seconds = -1 }
    metric_names        = "statsd"
    access              = "grants: [{principals: [a@example.com], roles: [owner], elections: ['*']}]"
  }
  expect_failures = [var.notification_emails, var.alert_thresholds, var.metric_names, var.access]
}
