output "url" {
  description = "Regent's URL for agents: the domain, or else the service in the first region."
  value       = local.url
}

output "urls" {
  description = "The URL of the service in each region."
  value       = { for region, service in google_cloud_run_v2_service.main : region => service.uri }
}

output "audience" {
  description = "The audience of the agents' ID tokens."
  value       = local.audience
}

output "agent_environment" {
  description = "The environment of an agent that uses the regent command on Google Cloud. Elsewhere use REGENT_ID_TOKEN_FILE instead of REGENT_AUDIENCE."
  value = {
    REGENT_AUDIENCE = local.audience
    REGENT_SERVER   = local.url
  }
}

output "settings" {
  description = "The service's environment variables; with them, `regent admin migrate` and `regent doctor` use the same store and topics."
  value       = local.settings
}

output "access" {
  description = "The mounted access file, with the scheduler's grant."
  value       = local.access
}

output "store" {
  description = "The store, in the form of --store."
  value       = local.store
}

output "topic" {
  description = "The topic on which changes are announced, in the form of --events."
  value       = local.topic
}

output "members_topic" {
  description = "The topic on which instances tell each other of members, in the form of --members; none without members."
  value       = local.members
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
  description = "The repository for images."
  value       = "${google_artifact_registry_repository.main.location}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.main.repository_id}"
}

output "load_balancer_address" {
  description = "The address for the domain's A record; null without a domain."
  value       = one(google_compute_global_address.main[*].address)
}

output "iap_audience" {
  description = "The audience of Identity-Aware Proxy, for iap_audiences; null without iap_domain."
  value       = local.proxied ? "/projects/${data.google_project.main[0].number}/global/backendServices/${google_compute_backend_service.people[0].generated_id}" : null
}

output "alerts" {
  description = "The alerts: metric, threshold, query, and for how many seconds the condition must hold."
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
