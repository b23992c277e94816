# Regent on Google Cloud: a service in one region or several, on one store. Each file holds one concern.

locals {
  home = var.regions[0]

  on_firestore = var.store == "firestore"
  on_spanner   = var.store == "spanner"

  audience = coalesce(var.audience, var.domain == null ? "${var.name}.${var.project_id}" : "https://${var.domain}")
  topic    = "projects/${var.project_id}/topics/${google_pubsub_topic.events.name}"
  members  = var.members ? "projects/${var.project_id}/topics/${google_pubsub_topic.members[0].name}" : "none"

  # In the form of `regent serve --store`.
  store = local.on_firestore ? (
    "firestore:${var.project_id}/${google_firestore_database.main[0].name}"
    ) : (
    "spanner:projects/${var.project_id}/instances/${google_spanner_instance.main[0].name}/databases/${google_spanner_database.main[0].name}"
  )

  services = concat(
    [
      "artifactregistry.googleapis.com",
      "cloudresourcemanager.googleapis.com",
      "cloudscheduler.googleapis.com",
      "cloudtrace.googleapis.com",
      "iam.googleapis.com",
      "monitoring.googleapis.com",
      "pubsub.googleapis.com",
      "run.googleapis.com",
      "secretmanager.googleapis.com",
      "telemetry.googleapis.com",
    ],
    local.on_firestore ? ["firestore.googleapis.com"] : [],
    local.on_spanner ? ["spanner.googleapis.com"] : [],
    var.domain == null ? [] : ["compute.googleapis.com"],
    var.iap_domain == null ? [] : ["iap.googleapis.com"],
    length(var.statement_keys) == 0 ? [] : ["cloudkms.googleapis.com"],
  )
}

# They stay enabled when Regent is destroyed: others in the project may use them.
resource "google_project_service" "main" {
  for_each = toset(local.services)

  project            = var.project_id
  service            = each.value
  disable_on_destroy = false
}
