# The alerts. Each has its entry in the runbook, cmd/regent/TROUBLESHOOTING.md, named after its key.

locals {
  limits = var.alert_thresholds

  # An alert fires once the value has been above the threshold for so many seconds: the largest value of the metric's
  # series, at once, unless a row says otherwise.
  situations = {
    no-leader = {
      title = "No leader", severity = "CRITICAL", metric = "leaderless", threshold = local.limits.leaderless_seconds
      means = "An election with candidates has had no leader for more than ${local.limits.leaderless_seconds} s."
    }
    flapping = {
      title = "Leadership flaps", severity = "WARNING", metric = "flapping", threshold = local.limits.flapping_elections
      means = "More elections than ${local.limits.flapping_elections} change their leader repeatedly: each more than five times within 10 minutes."
    }
    many-elections = {
      title = "One election after the other", severity = "WARNING", metric = "grants", threshold = local.limits.elections_per_hour
      means = "An election has had more grants within an hour than ${local.limits.elections_per_hour}."
    }
    split-brain = {
      title = "Two think that they lead", severity = "CRITICAL", metric = "splitbrain", threshold = local.limits.splitbrain_acts
      value = "sum(increase(${local.series.splitbrain}[5m]))"
      means = "A caller acts under an older fencing token although a newer one has been granted."
    }
    deposed = {
      title = "A leader was deposed", severity = "WARNING", metric = "changes", threshold = local.limits.deposed_leaders
      value = "sum(increase(${local.series.deposed}[10m]))"
      means = "More leaders than ${local.limits.deposed_leaders} did not do within 10 minutes what the policy of their election wants: no progress, over a budget, too many errors, or bad verdicts."
    }
    approval-waits = {
      title = "An approval waits", severity = "WARNING", metric = "approval_age", threshold = local.limits.approval_seconds
      means = "An election has waited for an operator's approval for more than ${local.limits.approval_seconds} s."
    }
    paused = {
      title = "An election is paused", severity = "WARNING", metric = "pause_age", threshold = local.limits.paused_seconds
      means = "Operators have paused or halted an election for more than ${local.limits.paused_seconds} s; meanwhile no candidate is granted."
    }
    read-only = {
      title   = "An election is read-only", severity = "ERROR", metric = "readonly", threshold = 0
      seconds = local.limits.readonly_seconds
      means   = "For ${local.limits.readonly_seconds} s too few members of an election's electorate have been present, so the check of a token for a write answers READ_ONLY."
    }
    low-participation = {
      title   = "Few members take part", severity = "WARNING", metric = "participation", threshold = local.limits.participation
      query   = "min(${local.series.participation}) < ${local.limits.participation}"
      seconds = 300
      means   = "For five minutes less than ${format("%.4g", 100 * local.limits.participation)} % of an election's electorate has been present or, without one, of its members has followed the leader."
    }
    contention = {
      title = "Contention", severity = "WARNING", metric = "contention", threshold = local.limits.contention_per_second
      value = "sum(rate(${local.series.contention}[5m]))"
      means = "More than ${local.limits.contention_per_second} attempts to lead are refused each second."
    }
    slow-transition = {
      title = "Slow change of leader", severity = "WARNING", metric = "transitions", threshold = local.limits.transition_seconds
      value = "histogram_quantile(0.99, sum by (le) (rate(${local.series.transitions_bucket}[10m])))"
      means = "From the end of one term to the next grant it took more than ${local.limits.transition_seconds} s."
    }
    hand-over = {
      title = "A hand-over is not completed", severity = "WARNING", metric = "handovers", threshold = local.limits.unfinished_handovers
      value = "sum(increase(${local.series.handovers_late}[10m]))"
      means = "More hand-overs than ${local.limits.unfinished_handovers} ran out of time within 10 minutes: the term has ended without the successor that was named."
    }
    journal-lag = {
      title   = "A follower lags behind its journal", severity = "WARNING", metric = "journal_lag", threshold = local.limits.journal_lag_entries
      seconds = 300
      means   = "For five minutes a follower of a journal has been more than ${local.limits.journal_lag_entries} entries behind."
    }
    unannounced-events = {
      title = "Events are not announced", severity = "ERROR", metric = "unannounced", threshold = local.limits.unannounced_seconds
      means = "An event has waited more than ${local.limits.unannounced_seconds} s to be announced."
    }
    cut-off = {
      title   = "An instance is cut off from the others", severity = "WARNING", metric = "troubles", threshold = 0
      value   = "max(${local.series.troubles_own})"
      seconds = 300
      means   = "For five minutes an instance could not announce its events, or has not heard those of others, or of their members."
    }
    invalid-access = {
      title   = "The access file is invalid", severity = "ERROR", metric = "troubles", threshold = 0
      value   = "max(${local.series.access_invalid})"
      seconds = 60
      means   = "For a minute the access file has been one that cannot be used: instances go on with the one before, and none can start."
    }
    errors = {
      title = "Requests fail", severity = "ERROR", metric = "operations", threshold = local.limits.error_ratio
      query = join(" ", [ # not by HTTP status: an instance that stops answers all waiting calls with 503, which is no failure
        "sum(rate(${local.series.operations_failed}[5m])) / sum(rate(${local.series.operations}[5m])) > ${local.limits.error_ratio}",
        "and sum(increase(${local.series.operations_failed}[5m])) >= 5", # few operations make no ratio
      ])
      seconds = 60
      means   = "More than ${format("%.4g", 100 * local.limits.error_ratio)} % of the operations fail because of the service."
    }
    unverified-callers = {
      title = "Callers are not verified", severity = "CRITICAL", metric = "unverified", threshold = 0
      means = "Cloud Run does not verify callers, so Regent refuses every call."
    }
    silence = {
      title   = "No instance reports", severity = "ERROR", metric = "leaderless", threshold = local.limits.silence_seconds
      query   = "absent(${local.series.leaderless})"
      seconds = local.limits.silence_seconds
      means   = "No instance has reported any metric for more than ${local.limits.silence_seconds} s, so no other alert can fire."
    }
  }

  alerts = {
    for name, s in local.situations : name => {
      title     = s.title
      severity  = s.severity
      metric    = local.metrics[s.metric]
      threshold = s.threshold
      query     = try(s.query, "${try(s.value, "max(${local.series[s.metric]})")} > ${s.threshold}")
      seconds   = try(s.seconds, 0)
      means     = s.means
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
