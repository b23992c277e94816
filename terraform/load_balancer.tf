# One name for all regions: each caller reaches the nearest region, and the next one while that fails. An agent should
# stay with one instance, in a region near it; the store is the same for all.

locals {
  balanced = var.domain != null
  proxied  = var.iap_domain != null
}

resource "google_compute_region_network_endpoint_group" "main" {
  for_each = local.balanced ? toset(var.regions) : []

  project               = var.project_id
  name                  = var.name
  region                = each.value
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = google_cloud_run_v2_service.main[each.value].name
  }

  lifecycle {
    create_before_destroy = true # that of a region which is to go is in use until the backend services leave it
  }
}

resource "google_compute_backend_service" "main" {
  count = local.balanced ? 1 : 0

  project               = var.project_id
  name                  = var.name
  protocol              = "HTTPS"
  load_balancing_scheme = "EXTERNAL_MANAGED"

  dynamic "backend" {
    for_each = google_compute_region_network_endpoint_group.main
    content {
      group = backend.value.id
    }
  }

  # Backends of this kind have no health checks; outlier detection watches their answers. An instance that stops answers
  # all waiting calls with 503, which may eject its region for 30 s; the others serve meanwhile, because at most half
  # are ejected.
  outlier_detection {
    consecutive_errors           = 5
    enforcing_consecutive_errors = 100
    max_ejection_percent         = 50

    interval {
      seconds = 5
    }
    base_ejection_time {
      seconds = 30
    }
  }

  log_config {
    enable      = true
    sample_rate = 0.01
  }
}

# The same instances, for people with a browser, whom Identity-Aware Proxy signs in.
resource "google_compute_backend_service" "people" {
  count = local.proxied ? 1 : 0

  project               = var.project_id
  name                  = "${var.name}-people"
  protocol              = "HTTPS"
  load_balancing_scheme = "EXTERNAL_MANAGED"

  dynamic "backend" {
    for_each = google_compute_region_network_endpoint_group.main
    content {
      group = backend.value.id
    }
  }

  iap {
    enabled = true
  }

  depends_on = [google_project_service.main]
}

# With auth = "platform", Cloud Run's IAM must let the proxy pass. Regent uses the identity of the person that the proxy
# names.
resource "google_cloud_run_v2_service_iam_member" "proxy" {
  for_each = local.proxied && var.auth == "platform" ? toset(var.regions) : []

  project  = var.project_id
  location = each.value
  name     = google_cloud_run_v2_service.main[each.value].name
  role     = "roles/run.invoker"
  member   = "serviceAccount:service-${data.google_project.main[0].number}@gcp-sa-iap.iam.gserviceaccount.com"
}

resource "google_compute_url_map" "main" {
  count = local.balanced ? 1 : 0

  project         = var.project_id
  name            = var.name
  default_service = google_compute_backend_service.main[0].id

  dynamic "host_rule" {
    for_each = google_compute_backend_service.people
    content {
      hosts        = [var.iap_domain]
      path_matcher = "people"
    }
  }

  dynamic "path_matcher" {
    for_each = google_compute_backend_service.people
    content {
      name            = "people"
      default_service = path_matcher.value.id
    }
  }
}

resource "google_compute_managed_ssl_certificate" "people" {
  count = local.proxied ? 1 : 0

  project = var.project_id
  name    = "${var.name}-people-${substr(sha256(var.iap_domain), 0, 8)}" # another domain, another certificate

  managed {
    domains = [var.iap_domain]
  }

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [google_project_service.main]
}

resource "google_compute_managed_ssl_certificate" "main" {
  count = local.balanced ? 1 : 0

  project = var.project_id
  name    = "${var.name}-${substr(sha256(coalesce(var.domain, "none")), 0, 8)}" # another domain, another certificate

  managed {
    domains = [var.domain]
  }

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [google_project_service.main]
}

# Without a policy, TLS 1.0 would be accepted.
resource "google_compute_ssl_policy" "main" {
  count = local.balanced ? 1 : 0

  project         = var.project_id
  name            = var.name
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"

  depends_on = [google_project_service.main]
}

resource "google_compute_target_https_proxy" "main" {
  count = local.balanced ? 1 : 0

  project          = var.project_id
  name             = var.name
  url_map          = google_compute_url_map.main[0].id
  ssl_certificates = concat([google_compute_managed_ssl_certificate.main[0].id], google_compute_managed_ssl_certificate.people[*].id)
  ssl_policy       = google_compute_ssl_policy.main[0].id
}

resource "google_compute_global_address" "main" {
  count = local.balanced ? 1 : 0

  project = var.project_id
  name    = var.name

  depends_on = [google_project_service.main]
}

resource "google_compute_global_forwarding_rule" "main" {
  count = local.balanced ? 1 : 0

  project               = var.project_id
  name                  = var.name
  target                = google_compute_target_https_proxy.main[0].id
  ip_address            = google_compute_global_address.main[0].id
  port_range            = "443"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  labels                = var.labels
}
