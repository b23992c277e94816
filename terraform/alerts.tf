# The alerts. Each has its section in the runbook, README.md, named after its key.

locals {
  alerts = {
    no-leader = {
      title     = "No leader"
      severity  = "CRITICAL"
      metric    = local.metrics.leaderless
      threshold = var.alert_thresholds.leaderless_seconds
      query     = "max(${local.series.leaderless}) > ${var.alert_thresholds.leaderless_seconds}"
      seconds   = 0
      means     = "An election with candidates has had no leader for more than ${var.alert_thresholds.leaderless_seconds} s."
    }
    flapping = {
      title     = "Leadership flaps"
      severity  = "WARNING"
      metric    = local.metrics.flapping
      threshold = var.alert_thresholds.flapping_elections
      query     = "max(${local.series.flapping}) > ${var.alert_thresholds.flapping_elections}"
      seconds   = 0
      means     = "More elections than ${var.alert_thresholds.flapping_elections} change their leader repeatedly: each more than five times within 10 minutes."
    }
    split-brain = {
      title     = "Two think that they lead"
      severity  = "CRITICAL"
      metric    = local.metrics.splitbrain
      threshold = var.alert_thresholds.splitbrain_acts
      query     = "sum(increase(${local.series.splitbrain}[5m])) > ${var.alert_thresholds.splitbrain_acts}"
      seconds   = 0
      means     = "A caller acts under an older fencing token although a newer one has been granted."
    }
    deposed = {
      title     = "A leader was deposed"
      severity  = "WARNING"
      metric    = local.metrics.changes
      threshold = var.alert_thresholds.deposed_leaders
      query     = "sum(increase(${local.series.deposed}[10m])) > ${var.alert_thresholds.deposed_leaders}"
      seconds   = 0
      means     = "More leaders than ${var.alert_thresholds.deposed_leaders} did not do within 10 minutes what the policy of their election wants: no progress, over a budget, too many errors, or bad verdicts."
    }
    approval-waits = {
      title     = "An approval waits"
      severity  = "WARNING"
      metric    = local.metrics.approval_age
      threshold = var.alert_thresholds.approval_seconds
      query     = "max(${local.series.approval_age}) > ${var.alert_thresholds.approval_seconds}"
      seconds   = 0
      means     = "An election has waited for an operator's approval for more than ${var.alert_thresholds.approval_seconds} s."
    }
    paused = {
      title     = "An election is paused"
      severity  = "WARNING"
      metric    = local.metrics.pause_age
      threshold = var.alert_thresholds.paused_seconds
      query     = "max(${local.series.pause_age}) > ${var.alert_thresholds.paused_seconds}"
      seconds   = 0
      means     = "Operators have paused an election for more than ${var.alert_thresholds.paused_seconds} s; meanwhile no candidate is granted."
    }
    contention = {
      title     = "Contention"
      severity  = "WARNING"
      metric    = local.metrics.contention
      threshold = var.alert_thresholds.contention_per_second
      query     = "sum(rate(${local.series.contention}[5m])) > ${var.alert_thresholds.contention_per_second}"
      seconds   = 0
      means     = "More than ${var.alert_thresholds.contention_per_second} attempts to lead are refused each second."
    }
    slow-transition = {
      title     = "Slow change of leader"
      severity  = "WARNING"
      metric    = local.metrics.transitions
      threshold = var.alert_thresholds.transition_seconds
      query     = "histogram_quantile(0.99, sum by (le) (rate(${local.series.transitions_bucket}[10m]))) > ${var.alert_thresholds.transition_seconds}"
      seconds   = 0
      means     = "From the end of one term to the next grant it took more than ${var.alert_thresholds.transition_seconds} s."
    }
    unannounced-events = {
      title     = "Events are not announced"
      severity  = "ERROR"
      metric    = local.metrics.unannounced
      threshold = var.alert_thresholds.unannounced_seconds
      query     = "max(${local.series.unannounced}) > ${var.alert_thresholds.unannounced_seconds}"
      seconds   = 0
      means     = "An event has waited more than ${var.alert_thresholds.unannounced_seconds} s to be announced."
    }
    cut-off = {
      title     = "An instance is cut off from events"
      severity  = "WARNING"
      metric    = local.metrics.troubles
      threshold = 0
      query     = "max(${local.series.troubles_own}) > 0"
      seconds   = 300
      means     = "For five minutes an instance could not announce its events, or has not heard those of others."
    }
    errors = {
      title     = "Requests fail"
      severity  = "ERROR"
      metric    = local.metrics.operations
      threshold = var.alert_thresholds.error_ratio
      query = join(" ", [ # not by HTTP status: an instance that stops answers all who wait with 503, and that is no fault
        "sum(rate(${local.series.operations_failed}[5m])) / sum(rate(${local.series.operations}[5m])) > ${var.alert_thresholds.error_ratio}",
        "and sum(increase(${local.series.operations_failed}[5m])) >= 5", # few operations make no ratio
      ])
      seconds = 60
      means   = "More than ${var.alert_thresholds.error_ratio * 100} % of the operations fail because of the service."
    }
    unverified-callers = {
      title     = "Callers are not verified"
      severity  = "CRITICAL"
      metric    = local.metrics.unverified
      threshold = 0
      query     = "max(${local.series.unverified}) > 0"
      seconds   = 0
      means     = "Cloud Run does not verify callers, so Regent refuses every call."
    }
    silence = {
      title     = "No instance reports"
      severity  = "ERROR"
      metric    = local.metrics.leaderless
      threshold = var.alert_thresholds.silence_seconds
      query     = "absent(${local.series.leaderless})"
      seconds   = var.alert_thresholds.silence_seconds
      means     = "No instance has reported any metric for more than ${var.alert_thresholds.silence_seconds} s, so no other alert can fire."
    }
  }

  channels = concat(var.notification_channels, [for c in google_monitoring_notification_channel.email : c.name])
}

resource "google_monitoring_notification_channel" "email" {
  for_each = toset(var.notification_emails)

  project      = var.project_id
  type         = "email"
  display_name = "${var.name}: ${each.value}"

  labels = {
    email_address = each.value
  }

  depends_on = [google_project_service.main]
}

resource "google_monitoring_alert_policy" "main" {
  for_each = local.alerts

  project               = var.project_id
  display_name          = "${var.name}: ${each.value.title}"
  severity              = each.value.severity
  combiner              = "OR"
  notification_channels = local.channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.title

    condition_prometheus_query_language {
      query                     = each.value.query
      duration                  = "${each.value.seconds}s"
      evaluation_interval       = "30s"
      disable_metric_validation = true # nothing has been reported before the first start
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "${var.name} in ${var.project_id}: ${each.value.title}"
    content   = "${each.value.means}\n\nWhat to look at, and what to do: ${var.runbook_url}#${each.key}"
  }

  depends_on = [google_project_service.main]
}
