# Metrics by the names under which they arrive. A name in braces and quotes may hold dots:
# {"regent.elections.flapping", "job"="regent"}.

locals {
  metric_spellings = {
    acknowledging   = { otlp = "regent.acknowledgements.waiting", prometheus = "regent_acknowledgements_waiting" }
    approvals       = { otlp = "regent.approvals.waiting", prometheus = "regent_approvals_waiting" }
    approval_age    = { otlp = "regent.approvals.waiting.age", prometheus = "regent_approvals_waiting_age_seconds" }
    ballots         = { otlp = "regent.ballots.duration", prometheus = "regent_ballots_duration_seconds" }
    batches         = { otlp = "regent.store.batch.size", prometheus = "regent_store_batch_size" }
    bids            = { otlp = "regent.ballots.bids", prometheus = "regent_ballots_bids_total" }
    cached          = { otlp = "regent.cache.reads", prometheus = "regent_cache_reads_total" }
    changes         = { otlp = "regent.leadership.changes", prometheus = "regent_leadership_changes_total" }
    contention      = { otlp = "regent.lease.contention", prometheus = "regent_lease_contention_total" }
    delegated       = { otlp = "regent.elections.delegated", prometheus = "regent_elections_delegated" }
    depth           = { otlp = "regent.elections.depth", prometheus = "regent_elections_depth" }
    displaced       = { otlp = "regent.connections.displaced", prometheus = "regent_connections_displaced_total" }
    elections       = { otlp = "regent.elections", prometheus = "regent_elections" }
    entries         = { otlp = "regent.journal.entries", prometheus = "regent_journal_entries_total" }
    flapping        = { otlp = "regent.elections.flapping", prometheus = "regent_elections_flapping" }
    grants          = { otlp = "regent.elections.grants", prometheus = "regent_elections_grants" }
    handovers       = { otlp = "regent.handovers", prometheus = "regent_handovers_total" }
    handover        = { otlp = "regent.handovers.duration", prometheus = "regent_handovers_duration_seconds" }
    handover_gap    = { otlp = "regent.handovers.gap", prometheus = "regent_handovers_gap_seconds" }
    journal_follows = { otlp = "regent.journal.followers", prometheus = "regent_journal_followers" }
    journal_lag     = { otlp = "regent.journal.lag", prometheus = "regent_journal_lag" }
    leaderless      = { otlp = "regent.elections.leaderless", prometheus = "regent_elections_leaderless_seconds" }
    ledger          = { otlp = "regent.ledger.duration", prometheus = "regent_ledger_duration_seconds" }
    ledger_size     = { otlp = "regent.ledger.size", prometheus = "regent_ledger_size_bytes" }
    limited         = { otlp = "regent.leadership.terms.limited", prometheus = "regent_leadership_terms_limited_total" }
    members         = { otlp = "regent.members", prometheus = "regent_members" }
    named_age       = { otlp = "regent.election.changed.age", prometheus = "regent_election_changed_age_seconds" }
    named_free      = { otlp = "regent.election.seats.free", prometheus = "regent_election_seats_free" }
    named_led       = { otlp = "regent.election.led", prometheus = "regent_election_led" }
    named_omitted   = { otlp = "regent.election.omitted", prometheus = "regent_election_omitted" }
    named_token     = { otlp = "regent.election.token", prometheus = "regent_election_token" }
    named_waiting   = { otlp = "regent.election.waiting", prometheus = "regent_election_waiting" }
    operations      = { otlp = "regent.lease.operations", prometheus = "regent_lease_operations_total" }
    participation   = { otlp = "regent.elections.participation", prometheus = "regent_elections_participation" }
    paused          = { otlp = "regent.elections.paused", prometheus = "regent_elections_paused" }
    pause_age       = { otlp = "regent.elections.paused.age", prometheus = "regent_elections_paused_age_seconds" }
    preemptions     = { otlp = "regent.leadership.preemptions", prometheus = "regent_leadership_preemptions_total" }
    readonly        = { otlp = "regent.elections.readonly", prometheus = "regent_elections_readonly" }
    refused         = { otlp = "regent.requests.refused", prometheus = "regent_requests_refused_total" }
    reported_calls  = { otlp = "regent.reported.calls", prometheus = "regent_reported_calls_total" }
    reported_errors = { otlp = "regent.reported.errors", prometheus = "regent_reported_errors_total" }
    reported_tasks  = { otlp = "regent.reported.tasks", prometheus = "regent_reported_tasks_total" }
    reported_tokens = { otlp = "regent.reported.tokens", prometheus = "regent_reported_tokens_total" }
    requests        = { otlp = "http.server.request.duration", prometheus = "http_server_request_duration_seconds" }
    splitbrain      = { otlp = "regent.leadership.splitbrain", prometheus = "regent_leadership_splitbrain_total" }
    stretch         = { otlp = "regent.renewals.stretch", prometheus = "regent_renewals_stretch" }
    stored          = { otlp = "regent.store.duration", prometheus = "regent_store_duration_seconds" }
    terms           = { otlp = "regent.leadership.term.duration", prometheus = "regent_leadership_term_duration_seconds" }
    transitions     = { otlp = "regent.leadership.transition.duration", prometheus = "regent_leadership_transition_duration_seconds" }
    troubles        = { otlp = "regent.events.troubles", prometheus = "regent_events_troubles" }
    unannounced     = { otlp = "regent.events.unannounced.age", prometheus = "regent_events_unannounced_age_seconds" }
    unverified      = { otlp = "regent.callers.unverified", prometheus = "regent_callers_unverified" }
    waiting         = { otlp = "regent.candidates.waiting", prometheus = "regent_candidates_waiting" }
    watchers        = { otlp = "regent.watchers", prometheus = "regent_watchers" }
  }
  metrics = { for key, spelling in local.metric_spellings : key => spelling[var.metric_names] }

  # A histogram is queried by its buckets or its count.
  series = merge(
    { for key, name in local.metrics : key => "{\"${name}\", \"job\"=\"${var.name}\"}" },
    { for key in ["ballots", "batches", "handover", "handover_gap", "ledger", "ledger_size", "stored", "terms", "transitions"] : "${key}_bucket" => "{\"${local.metrics[key]}_bucket\", \"job\"=\"${var.name}\"}" },
    {
      ballots_count   = "{\"${local.metrics.ballots}_count\", \"job\"=\"${var.name}\"}"
      requests_bucket = "{\"${local.metrics.requests}_bucket\", \"job\"=\"${var.name}\"}"
      requests_all    = "{\"${local.metrics.requests}_count\", \"job\"=\"${var.name}\"}"
      requests_failed = "{\"${local.metrics.requests}_count\", \"job\"=\"${var.name}\", \"${local.status_label}\"=~\"5..\"}"

      handovers_late = "{\"${local.metrics.handovers}\", \"job\"=\"${var.name}\", \"outcome\"=\"timed_out\"}"

      # A leader that the policy has ended, or would have (onTrip notify).
      deposed = "{\"${local.metrics.changes}\", \"job\"=\"${var.name}\", \"type\"=~\"deposed|tripped\"}"

      troubles_own = "{\"${local.metrics.troubles}\", \"job\"=\"${var.name}\", \"reason\"=~\"cannot_announce|cannot_hear|cannot_hear_members\"}"

      access_invalid = "{\"${local.metrics.troubles}\", \"job\"=\"${var.name}\", \"reason\"=\"access_file_invalid\"}"

      operations_failed = "{\"${local.metrics.operations}\", \"job\"=\"${var.name}\", \"outcome\"=~\"internal|store_unavailable|outcome_unknown|record_corrupt\"}"
    },
  )
  status_label = var.metric_names == "otlp" ? "http.response.status_code" : "http_response_status_code"
}
