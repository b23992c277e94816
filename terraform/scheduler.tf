# For times without a running instance: the tick records leases that have ended, and announces events that were left
# behind. Concurrent ticks are harmless.

resource "google_cloud_scheduler_job" "tick" {
  project          = var.project_id
  region           = coalesce(var.scheduler_region, local.home)
  name             = "${var.name}-tick"
  description      = "Regent: do overdue work."
  schedule         = var.tick_schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "60s"

  retry_config {
    retry_count          = 1
    min_backoff_duration = "5s"
  }

  http_target {
    http_method = "POST"
    uri         = "${google_cloud_run_v2_service.main[local.home].uri}/v1/maintenance:tick"

    oidc_token {
      service_account_email = google_service_account.scheduler.email
      audience              = local.audience
    }
  }

  depends_on = [google_project_service.main]
}

resource "google_cloud_run_v2_service_iam_member" "scheduler" {
  project  = var.project_id
  location = local.home
  name     = google_cloud_run_v2_service.main[local.home].name
  role     = "roles/run.invoker"
  member   = google_service_account.scheduler.member
}
