output "url" {
  description = "Where agents find Regent: the domain, or else the service in the first region."
  value       = local.url
}

output "urls" {
  description = "The service of each region, by region."
  value       = { for region, service in google_cloud_run_v2_service.main : region => service.uri }
}

output "audience" {
  description = "For whom agents have their ID tokens made out."
  value       = local.audience
}

output "agent_environment" {
  description = "The environment of an agent that uses the regent command on Google Cloud. Elsewhere REGENT_ID_TOKEN_FILE takes the place of REGENT_AUDIENCE."
  value = {
    REGENT_AUDIENCE = local.audience
    REGENT_SERVER   = local.url
  }
}

output "settings" {
  description = "What the service is told by its environment; with them, `regent migrate` and `regent doctor` find the same store and topic."
  value       = local.settings
}

output "policy" {
  description = "The policy as it is mounted, with the scheduler's grant."
  value       = local.policy
}

output "store" {
  description = "The store, as --store has it."
  value       = local.store
}

output "topic" {
  description = "The topic on which changes are announced, as --events has it."
  value       = local.topic
}

output "server_service_account" {
  description = "The e-mail address of the identity that the service runs as."
  value       = google_service_account.server.email
}

output "scheduler_service_account" {
  description = "The e-mail address of the identity that calls the tick."
  value       = google_service_account.scheduler.email
}

output "repository" {
  description = "Where images can be pushed to."
  value       = "${google_artifact_registry_repository.main.location}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.main.repository_id}"
}

output "load_balancer_address" {
  description = "The address that the domain has to point to; null without a domain."
  value       = one(google_compute_global_address.main[*].address)
}

output "alerts" {
  description = "What fires when: each alert's metric, threshold, query, and for how many seconds it has to hold."
  value = {
    for name, alert in local.alerts : name => {
      metric    = alert.metric
      threshold = alert.threshold
      query     = alert.query
      seconds   = alert.seconds
    }
  }
}

locals {
  url = var.domain == null ? google_cloud_run_v2_service.main[local.home].uri : "https://${var.domain}"
}
