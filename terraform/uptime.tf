# Checks from outside, as agents call: through the load balancer, or in each region.

locals {
  probed = !var.uptime_check ? {} : (
    var.domain == null
    ? { for region in var.regions : region => trimprefix(google_cloud_run_v2_service.main[region].uri, "https://") }
    : { global = var.domain }
  )
}

data "google_project" "main" {
  count = var.uptime_check || local.proxied ? 1 : 0

  project_id = var.project_id
}

# This right lets Cloud Monitoring's agent pass Cloud Run, and nothing more: the access file does not contain it.
resource "google_cloud_run_v2_service_iam_member" "uptime" {
  for_each = var.uptime_check ? toset(var.regions) : []

  project  = var.project_id
  location = each.value
  name     = google_cloud_run_v2_service.main[each.value].name
  role     = "roles/run.invoker"
  member   = "serviceAccount:service-${data.google_project.main[0].number}@gcp-sa-monitoring-notification.iam.gserviceaccount.com"
}

resource "google_monitoring_uptime_check_config" "ready" {
  for_each = local.probed

  project      = var.project_id
  display_name = "${var.name}: ready (${each.key})"
  timeout      = "10s"
  period       = "60s"

  http_check {
    path         = "/health/ready"
    port         = 443
    use_ssl      = true
    validate_ssl = true

    service_agent_authentication {
      type = "OIDC_TOKEN"
    }
  }

  monitored_resource {
    type = "uptime_url"
    labels = {
      project_id = var.project_id
      host       = each.value
    }
  }

  depends_on = [google_project_service.main]
}

resource "google_monitoring_alert_policy" "unreachable" {
  for_each = google_monitoring_uptime_check_config.ready

  project               = var.project_id
  display_name          = "${var.name}: Not reachable (${each.key})"
  severity              = "CRITICAL"
  combiner              = "OR"
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = "Two places or more cannot reach it"

    condition_threshold {
      filter          = "resource.type = \"uptime_url\" AND metric.type = \"monitoring.googleapis.com/uptime_check/check_passed\" AND metric.labels.check_id = \"${each.value.uptime_check_id}\""
      comparison      = "COMPARISON_GT"
      threshold_value = 1
      duration        = "60s"

      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_NEXT_OLDER"
        cross_series_reducer = "REDUCE_COUNT_FALSE"
        group_by_fields      = ["resource.label.host"]
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "${var.name} in ${var.project_id}: Not reachable"
    content   = "Cloud Monitoring does not get an answer from /health/ready.\n\nWhat to look at, and what to do: ${var.runbook_url}#unreachable"
  }
}
