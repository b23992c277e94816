# The most important charts for an operator come first.

locals {
  charts = [
    { title = "Elections by state", queries = { "$${state}" = "sum by (state) (${local.series.elections})" } },
    { title = "Longest time without a leader (s)", queries = { "longest" = "max(${local.series.leaderless})" } },
    { title = "Acts under an older token, in 5 min", queries = { "$${op}" = "sum by (op) (increase(${local.series.splitbrain}[5m]))" } },
    { title = "Changes, per minute", queries = { "$${type}" = "60 * sum by (type) (rate(${local.series.changes}[5m]))" } },
    { title = "Elections that flap", queries = { "most" = "max(${local.series.flapping})" } },
    { title = "Most grants of one election, in an hour (6: or more)", queries = { "most" = "max(${local.series.grants})" } },
    { title = "Change of leader (s)", queries = {
      "median" = "histogram_quantile(0.5, sum by (le) (rate(${local.series.transitions_bucket}[10m])))"
      "99 %"   = "histogram_quantile(0.99, sum by (le) (rate(${local.series.transitions_bucket}[10m])))"
    } },
    { title = "Ballot, from the first bid to the grant (s)", queries = {
      "median" = "histogram_quantile(0.5, sum by (le) (rate(${local.series.ballots_bucket}[10m])))"
      "99 %"   = "histogram_quantile(0.99, sum by (le) (rate(${local.series.ballots_bucket}[10m])))"
    } },
    { title = "Bids of a ballot", queries = { "mean" = "sum(rate(${local.series.bids}[10m])) / sum(rate(${local.series.ballots_count}[10m]))" } },
    { title = "Length of terms (s), median", queries = { "$${end}" = "histogram_quantile(0.5, sum by (le, end) (rate(${local.series.terms_bucket}[1h])))" } },
    { title = "Terms that a limit or an order ended, per hour", queries = { "$${because}" = "3600 * sum by (because) (rate(${local.series.limited}[1h]))" } },
    { title = "Terms that end for a better candidate, per hour", queries = { "all" = "3600 * sum(rate(${local.series.preemptions}[1h]))" } },
    { title = "Hand-overs, per hour", queries = { "$${outcome}" = "3600 * sum by (outcome) (rate(${local.series.handovers}[1h]))" } },
    { title = "Hand-over (s), 90 %", queries = {
      "from the naming of the successor"  = "histogram_quantile(0.9, sum by (le) (rate(${local.series.handover_bucket}[1h])))"
      "from the end of the leader's work" = "histogram_quantile(0.9, sum by (le) (rate(${local.series.handover_gap_bucket}[1h])))"
    } },
    { title = "Checkpoints and journals, 99 % (s)", queries = { "$${op}" = "histogram_quantile(0.99, sum by (le, op) (rate(${local.series.ledger_bucket}[5m])))" } },
    { title = "Size of what is kept, 90 % (bytes)", queries = { "$${op}" = "histogram_quantile(0.9, sum by (le, op) (rate(${local.series.ledger_size_bucket}[5m])))" } },
    { title = "Entries of journals, per second", queries = { "appended" = "sum(rate(${local.series.entries}[5m]))" } },
    { title = "Followers of journals", queries = { "followers" = "sum(${local.series.journal_follows})" } },
    { title = "Entries that the slowest of them is behind", queries = { "entries" = "max(${local.series.journal_lag})" } },
    { title = "Delegated elections", queries = { "elections" = "max(${local.series.delegated})", "levels of the deepest" = "max(${local.series.depth})" } },
    { title = "Members by role", queries = { "$${role}" = "sum by (role) (${local.series.members})" } },
    { title = "Lowest participation of an election (0 to 1)", queries = { "lowest" = "min(${local.series.participation})" } },
    { title = "Elections that are read-only", queries = { "most" = "max(${local.series.readonly})" } },
    { title = "Elections that wait for operators", queries = { "paused" = "max(${local.series.paused})", "for an approval" = "max(${local.series.approvals})" } },
    { title = "The longest of these (s)", queries = { "paused" = "max(${local.series.pause_age})", "for an approval" = "max(${local.series.approval_age})" } },
    { title = "Work that leaders report, per minute", queries = {
      "tasks"  = "60 * sum(rate(${local.series.reported_tasks}[5m]))"
      "calls"  = "60 * sum(rate(${local.series.reported_calls}[5m]))"
      "errors" = "60 * sum(rate(${local.series.reported_errors}[5m]))"
    } },
    { title = "Tokens of language models that leaders report, per minute", queries = { "tokens" = "60 * sum(rate(${local.series.reported_tokens}[5m]))" } },
    { title = "Lease operations, per second", queries = { "$${op} $${outcome}" = "sum by (op, outcome) (rate(${local.series.operations}[5m]))" } },
    { title = "Contention, per second", queries = { "$${reason}" = "sum by (reason) (rate(${local.series.contention}[5m]))" } },
    { title = "Calls that wait", queries = {
      "for the lease"                = "sum(${local.series.waiting})"
      "for changes"                  = "sum(${local.series.watchers})"
      "for members to follow a term" = "sum(${local.series.acknowledging})"
    } },
    { title = "Oldest event that is not announced (s)", queries = { "oldest" = "max(${local.series.unannounced})" } },
    { title = "Instances that are cut off from the others", queries = { "$${reason}" = "sum by (reason) (${local.series.troubles})" } },
    { title = "Store, 99 % (s)", queries = { "$${op}" = "histogram_quantile(0.99, sum by (le, op) (rate(${local.series.stored_bucket}[5m])))" } },
    { title = "Renewals in one batch, 90 %", queries = { "renewals" = "histogram_quantile(0.9, sum by (le) (rate(${local.series.batches_bucket}[5m])))" } },
    { title = "Renewals put off under load (0 to 1)", queries = { "furthest" = "max(${local.series.stretch})" } },
    { title = "Reads of the cache, per second", queries = { "$${result}" = "sum by (result) (rate(${local.series.cached}[5m]))" } },
    { title = "Requests, 99 % (s)", queries = { "all" = "histogram_quantile(0.99, sum by (le) (rate(${local.series.requests_bucket}[5m])))" } },
    { title = "Requests, per second", queries = { "all" = "sum(rate(${local.series.requests_all}[5m]))", "failed" = "sum(rate(${local.series.requests_failed}[5m]))" } },
    { title = "Instances that refuse all, as callers are not verified", queries = { "instances" = "sum(${local.series.unverified})" } },
    { title = "Connections closed to make room, per second", queries = { "all" = "sum(rate(${local.series.displaced}[5m]))" } },
    { title = "Led: 1, vacant: 0; of seats: how many are led (metrics_elections)", queries = { "$${election}" = "max by (election) (${local.series.named_led})" } },
    { title = "Fencing token (metrics_elections)", queries = { "$${election}" = "max by (election) (${local.series.named_token})" } },
    { title = "Since the last change of leader (s, metrics_elections)", queries = { "$${election}" = "min by (election) (${local.series.named_age})" } },
    { title = "Candidates in line (metrics_elections)", queries = { "$${election}" = "sum by (election) (${local.series.named_waiting})" } },
    { title = "Seats without a leader (metrics_elections)", queries = { "$${election}" = "min by (election) (${local.series.named_free})" } },
    { title = "Elections of metrics_elections that are not shown", queries = { "most" = "max(${local.series.named_omitted})" } },
    { title = "Refused requests, per second", queries = { "$${reason}" = "sum by (reason) (rate(${local.series.refused}[5m]))" } },
  ]
}

resource "google_monitoring_dashboard" "main" {
  project = var.project_id

  dashboard_json = jsonencode({
    displayName = "Regent (${var.name})"
    gridLayout = {
      columns = "3"
      widgets = [for chart in local.charts : {
        title = chart.title
        xyChart = {
          dataSets = [for legend, query in chart.queries : {
            plotType        = "LINE"
            legendTemplate  = legend
            timeSeriesQuery = { prometheusQuery = query }
          }]
        }
      }]
    }
  })

  depends_on = [google_project_service.main]
}
