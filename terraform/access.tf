# The access file, mounted at its newest version, so that a change needs no new revision.

locals {
  # An e-mail address names a principal only while there is one issuer: see service.tf.
  scheduler = length(local.issuers) == 1 ? "${google_service_account.scheduler.account_id}@${var.project_id}.iam.gserviceaccount.com" : "${local.google}|${google_service_account.scheduler.unique_id}"

  # With the scheduler's grant. Everything else stays as it is.
  access = yamlencode(merge(yamldecode(var.access), {
    grants = concat(yamldecode(var.access).grants, [{
      principals = [local.scheduler]
      roles      = ["scheduler"]
    }])
  }))
}

resource "google_secret_manager_secret" "access" {
  project   = var.project_id
  secret_id = "${var.name}-access"
  labels    = var.labels

  replication {
    auto {}
  }

  depends_on = [google_project_service.main]
}

resource "google_secret_manager_secret_version" "access" {
  secret          = google_secret_manager_secret.access.id
  secret_data     = local.access
  deletion_policy = "ABANDON" # "latest" may go on naming an old one for a while, and without it no instance could start

  lifecycle {
    create_before_destroy = true # so that a version always exists
  }
}
