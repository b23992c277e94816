# The resources that store/firestore/doc.go asks for under "Setting up".

resource "google_firestore_database" "main" {
  count = local.on_firestore ? 1 : 0

  project                           = var.project_id
  name                              = var.firestore_database
  location_id                       = coalesce(var.firestore_location, local.home)
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = "DELETE_PROTECTION_ENABLED"
  deletion_policy                   = "ABANDON"

  # An empty database starts all tokens from 1 again. So no plan destroys or replaces it, whichever region is the first
  # now: README.md says how to leave it.
  lifecycle {
    prevent_destroy = true
    ignore_changes  = [location_id]
  }

  depends_on = [google_project_service.main]
}

resource "google_firestore_backup_schedule" "daily" {
  count = local.on_firestore ? 1 : 0

  project   = var.project_id
  database  = google_firestore_database.main[0].name
  retention = "${var.backup_retention_days * 24 * 3600}s"

  daily_recurrence {}
}

# The outbox is queried by election and over all elections, the history over all elections by time. A deadline is never queried and has no
# index: an index over a time makes writes slower and more expensive.
locals {
  event_fields = {
    unannounced = ["COLLECTION", "COLLECTION_GROUP"]
    requestedAt = ["COLLECTION_GROUP"]
    deleteAfter = []
  }
}

resource "google_firestore_field" "event" {
  for_each = local.on_firestore ? local.event_fields : {}

  project    = var.project_id
  database   = google_firestore_database.main[0].name
  collection = "events"
  field      = each.key

  index_config {
    dynamic "indexes" {
      for_each = each.value
      content {
        order       = "ASCENDING"
        query_scope = indexes.value
      }
    }
  }

  dynamic "ttl_config" {
    for_each = each.key == "deleteAfter" ? [true] : []
    content {}
  }
}

# The remains of trimmed journal entries expire as events do, because the service has no right to delete documents.
resource "google_firestore_field" "segment" {
  count = local.on_firestore ? 1 : 0

  project    = var.project_id
  database   = google_firestore_database.main[0].name
  collection = "segments"
  field      = "deleteAfter"

  index_config {}

  ttl_config {}
}

# The tick queries which elections have a leader, and which are to be retired. No renewal changes these fields.
resource "google_firestore_field" "lease" {
  for_each = local.on_firestore ? toset(["leaderId", "retireAt"]) : []

  project    = var.project_id
  database   = google_firestore_database.main[0].name
  collection = "leadership"
  field      = each.value

  index_config {
    indexes {
      order       = "ASCENDING"
      query_scope = "COLLECTION"
    }
  }
}

# A query of the outbox scans past the events that were announced before, whose index entries Firestore keeps for a
# while.
resource "google_firestore_index" "outbox" {
  count = local.on_firestore ? 1 : 0

  project     = var.project_id
  database    = google_firestore_database.main[0].name
  collection  = "events"
  query_scope = "COLLECTION_GROUP"

  fields {
    field_path = "unannounced"
    order      = "ASCENDING"
  }
  fields {
    field_path = "requestedAt"
    order      = "ASCENDING"
  }
}

# No other field is queried. Of these renewalDue matters most: every renewal changes it. Checkpoints and the entries of
# journals are large, and read by name alone.
resource "google_firestore_field" "exempt" {
  for_each = local.on_firestore ? toset(["leadership", "events", "history", "leadershipLogs", "segments"]) : []

  project    = var.project_id
  database   = google_firestore_database.main[0].name
  collection = each.value
  field      = "*"

  index_config {}
}
