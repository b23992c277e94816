# The identities and their rights. None has a key, a primitive role, or the right to delete a lease.

resource "google_service_account" "server" {
  project      = var.project_id
  account_id   = "${var.name}-server"
  display_name = "Regent's server"
  description  = "The identity of Regent's instances."

  depends_on = [google_project_service.main]
}

resource "google_service_account" "scheduler" {
  project      = var.project_id
  account_id   = "${var.name}-scheduler"
  display_name = "Regent's scheduler"
  description  = "Ticks Regent to do overdue work; may do nothing else."

  depends_on = [google_project_service.main]
}

# Telemetry, and its quota.
resource "google_project_iam_member" "telemetry" {
  for_each = toset([
    "roles/serviceusage.serviceUsageConsumer",
    "roles/telemetry.metricsWriter",
    "roles/telemetry.tracesWriter",
  ])

  project = var.project_id
  role    = each.value
  member  = google_service_account.server.member
}

# Each instance creates a subscription, receives from it, and deletes it; and deletes those of killed instances. No
# predefined role allows that without the right to delete topics. Pub/Sub has no IAM conditions, so it covers all subscriptions of the project.
resource "google_project_iam_custom_role" "listener" {
  project     = var.project_id
  role_id     = replace("${var.name}-listener", "-", "_")
  title       = "Regent listener"
  description = "Create, use and delete subscriptions."
  permissions = [
    "pubsub.subscriptions.consume",
    "pubsub.subscriptions.create",
    "pubsub.subscriptions.delete",
    "pubsub.subscriptions.get",
    "pubsub.subscriptions.list",
    "pubsub.subscriptions.update",
  ]

  depends_on = [google_project_service.main]
}

resource "google_project_iam_member" "listener" {
  project = var.project_id
  role    = google_project_iam_custom_role.listener.name
  member  = google_service_account.server.member
}

# On the topic of events: publish to it, and (as a subscriber, which on a topic means no more than that) attach a subscription.
resource "google_pubsub_topic_iam_member" "server" {
  for_each = toset(["roles/pubsub.publisher", "roles/pubsub.subscriber"])

  project = var.project_id
  topic   = google_pubsub_topic.events.name
  role    = each.value
  member  = google_service_account.server.member
}

# The same on the topic of members.
resource "google_pubsub_topic_iam_member" "members" {
  for_each = toset(var.members ? ["roles/pubsub.publisher", "roles/pubsub.subscriber"] : [])

  project = var.project_id
  topic   = google_pubsub_topic.members[0].name
  role    = each.value
  member  = google_service_account.server.member
}

# The store. The predefined roles that allow writes also allow deleting documents or changing tables; Regent does neither.
resource "google_project_iam_custom_role" "writer" {
  project     = var.project_id
  role_id     = replace("${var.name}-writer", "-", "_")
  title       = "Regent writer"
  description = "Write leases and events; delete nothing."
  permissions = local.on_firestore ? [
    "datastore.entities.create",
    "datastore.entities.update",
    ] : [
    "spanner.databases.beginOrRollbackReadWriteTransaction",
    "spanner.databases.write",
  ]

  depends_on = [google_project_service.main]
}

# Firestore has no IAM policy per database: a condition limits the project's.
resource "google_project_iam_member" "firestore" {
  for_each = local.on_firestore ? {
    read  = "roles/datastore.viewer"
    write = google_project_iam_custom_role.writer.name
  } : {}

  project = var.project_id
  role    = each.value
  member  = google_service_account.server.member

  condition {
    title       = "only-${trim(var.firestore_database, "()")}"
    description = "Regent's own database."
    expression  = "resource.name == \"projects/${var.project_id}/databases/${var.firestore_database}\""
  }
}

resource "google_spanner_database_iam_member" "server" {
  for_each = local.on_spanner ? {
    read  = "roles/spanner.databaseReader"
    write = google_project_iam_custom_role.writer.name
  } : {}

  project  = var.project_id
  instance = google_spanner_instance.main[0].name
  database = google_spanner_database.main[0].name
  role     = each.value
  member   = google_service_account.server.member
}

resource "google_secret_manager_secret_iam_member" "access" {
  project   = var.project_id
  secret_id = google_secret_manager_secret.access.secret_id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.server.member
}
