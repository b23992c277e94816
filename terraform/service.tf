# The service, once in each region.

locals {
  access_folder = "/etc/regent"
  access_file   = "access.yaml"

  google = "https://accounts.google.com"

  # With another issuer, Google stays one for the scheduler's tokens.
  issuers = var.auth == "oidc" ? distinct([var.oidc_issuer, local.google]) : [local.google]

  # The domain, because var.ingress may keep an instance from its own run.app URL.
  probe = concat(var.auth_probe_required ? ["required"] : [], var.domain == null ? [] : ["https://${var.domain}"])

  # Variables of `regent serve`.
  settings = merge({
    REGENT_STORE         = local.store
    REGENT_EVENTS        = local.topic
    REGENT_MEMBERS       = local.members
    REGENT_HISTORY       = "${var.history_hours}h"
    REGENT_CACHE_EXPIRY  = "${var.cache_expiry_seconds}s"
    REGENT_STREAM_LIMIT  = "${var.stream_limit_seconds}s"
    REGENT_AUTH          = var.auth
    REGENT_AUTH_AUDIENCE = local.audience
    REGENT_ACCESS        = "${local.access_folder}/${local.access_file}"

    REGENT_MAX_CONCURRENCY = tostring(var.concurrency) # long calls leave a part of it to renewals

    REGENT_UI         = tostring(var.ui)
    REGENT_KUBERNETES = tostring(var.kubernetes)
    REGENT_MCP        = tostring(var.mcp)
    }, length(var.iap_audiences) == 0 ? {} : {
    REGENT_IAP_AUDIENCE = join(",", var.iap_audiences)
    }, length(var.peers) == 0 ? {} : {
    REGENT_PEERS          = join(",", [for name, peer in var.peers : "${name}=${peer.url}"])
    REGENT_PEER_AUDIENCES = join(",", [for name, peer in var.peers : "${name}=${coalesce(peer.audience, peer.url)}"])
    }, length(var.metrics_elections) == 0 ? {} : {
    REGENT_METRICS_ELECTIONS = join(",", var.metrics_elections)
    }, length(var.statement_keys) == 0 ? {} : {
    REGENT_STATEMENT_KEY = join(",", [for k in var.statement_keys : "kms:${k}"])
    }, var.events_region == null ? {} : {
    REGENT_EVENTS_ENDPOINT = "${var.events_region}-pubsub.googleapis.com:443"
    }, var.auth == "platform" && length(local.probe) > 0 ? {
    REGENT_AUTH_PROBE = join(",", local.probe)
    } : {}, var.auth == "oidc" ? {
    REGENT_AUTH_ISSUER = join(",", local.issuers)
  } : {})

  # Variables of its libraries. Telemetry uses the project's own quota.
  telemetry = {
    GOOGLE_CLOUD_QUOTA_PROJECT      = var.project_id
    OTEL_EXPORTER_OTLP_ENDPOINT     = "https://telemetry.googleapis.com"
    OTEL_METRIC_EXPORT_INTERVAL     = "15000"
    OTEL_SERVICE_NAME               = var.name
    OTEL_TRACES_SAMPLER             = "traceidratio" # Cloud Run is the parent of each request, and samples one in 10 s at most
    OTEL_TRACES_SAMPLER_ARG         = tostring(var.trace_ratio)
    SPANNER_DISABLE_BUILTIN_METRICS = "true"
  }
}

resource "google_cloud_run_v2_service" "main" {
  for_each = toset(var.regions)

  project             = var.project_id
  name                = var.name
  location            = each.value
  description         = "Regent: one leader at a time."
  ingress             = var.ingress
  custom_audiences    = [local.audience]
  deletion_protection = var.deletion_protection
  labels              = var.labels

  # With auth = "platform" Regent relies on IAM to verify tokens: without it, any caller could forge one. With "oidc" it
  # verifies them itself, and IAM, which removes the signature of each token that it verifies, would be in the way.
  invoker_iam_disabled = var.auth == "oidc"

  scaling {
    scaling_mode          = var.stopped ? "MANUAL" : "AUTOMATIC"
    manual_instance_count = var.stopped ? 0 : null
  }

  template {
    service_account                  = google_service_account.server.email
    timeout                          = "${var.request_timeout_seconds}s"
    max_instance_request_concurrency = var.concurrency
    execution_environment            = "EXECUTION_ENVIRONMENT_GEN2"
    session_affinity                 = false # with its ticket an agent renews at any instance without a read
    labels                           = var.labels

    scaling {
      min_instance_count = var.min_instances
      max_instance_count = var.max_instances
    }

    containers {
      name  = "regent"
      image = var.image
      args  = ["serve"]

      ports {
        container_port = 8080
      }

      resources {
        cpu_idle          = false # an instance also works between requests: it announces, receives events, and looks for leases that end
        startup_cpu_boost = true
        limits = {
          cpu    = tostring(var.cpu)
          memory = "${var.memory_mib}Mi"
        }
      }

      dynamic "env" {
        for_each = merge(local.settings, local.telemetry, {
          OTEL_RESOURCE_ATTRIBUTES = "gcp.project_id=${var.project_id},cloud.platform=gcp_cloud_run,cloud.region=${each.value}"
        })
        content {
          name  = env.key
          value = env.value
        }
      }

      volume_mounts {
        name       = "access"
        mount_path = local.access_folder
      }

      # An instance gets no requests until its store has answered once and, with auth = "platform", it has tried for 10 s
      # at most to find out whether IAM checks callers. It waits for the store for 200 s, because its rights take minutes
      # to count after they were granted.
      startup_probe {
        period_seconds    = 3
        timeout_seconds   = 3
        failure_threshold = 80

        http_get {
          path = "/health/ready"
        }
      }

      # Restarting an instance does not help while its store is unavailable.
      liveness_probe {
        period_seconds    = 10
        timeout_seconds   = 3
        failure_threshold = 3

        http_get {
          path = "/health/live"
        }
      }
    }

    volumes {
      name = "access"

      secret {
        secret       = google_secret_manager_secret.access.secret_id
        default_mode = 292 # 0444

        items {
          path    = local.access_file
          version = "latest"
        }
      }
    }
  }

  traffic {
    type    = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
    percent = 100
  }

  depends_on = [
    google_firestore_field.event,
    google_firestore_field.lease,
    google_firestore_index.outbox,
    google_project_iam_member.firestore,
    google_project_iam_member.listener,
    google_project_iam_member.telemetry,
    google_pubsub_topic_iam_member.members,
    google_pubsub_topic_iam_member.server,
    google_secret_manager_secret_iam_member.access,
    google_secret_manager_secret_version.access,
    google_spanner_database_iam_member.server,
  ]
}

# One resource for each member, and not an authoritative binding: replacing one form by the other on a running service
# could lock out all agents in between. Regent itself watches for members such as allUsers: see unverified-callers in
# alerts.tf.
resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = {
    for pair in setproduct(var.regions, var.invokers) : "${pair[0]} ${pair[1]}" => { region = pair[0], member = pair[1] }
  }

  project  = var.project_id
  location = each.value.region
  name     = google_cloud_run_v2_service.main[each.value.region].name
  role     = "roles/run.invoker"
  member   = each.value.member
}
