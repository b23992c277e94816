# The topic on which every change is announced. Instances create their subscriptions; other subscribers need the right to attach.
resource "google_pubsub_topic" "events" {
  project                    = var.project_id
  name                       = var.name
  labels                     = var.labels
  message_retention_duration = var.topic_retention_hours == 0 ? null : "${var.topic_retention_hours * 3600}s"

  message_storage_policy {
    allowed_persistence_regions = coalesce(var.topic_storage_regions, var.regions)
  }

  depends_on = [google_project_service.main]
}

# The topic on which instances tell each other which members are present. A message is out of date after seconds, so none is kept for
# subscriptions that seek back; of those that instances create, one that is not used for a day is deleted, as above.
resource "google_pubsub_topic" "members" {
  count = var.members ? 1 : 0

  project = var.project_id
  name    = "${var.name}-members"
  labels  = var.labels

  message_storage_policy {
    allowed_persistence_regions = coalesce(var.topic_storage_regions, var.regions)
  }

  depends_on = [google_project_service.main]
}
