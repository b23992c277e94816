output "agent_environment" {
  description = "The environment of an agent."
  value       = module.regent.agent_environment
}

output "store" {
  description = "The store, for `regent admin migrate` and `regent doctor`."
  value       = module.regent.store
}

output "topic" {
  description = "The topic on which changes are announced."
  value       = module.regent.topic
}

output "members_topic" {
  description = "The topic on which instances tell each other of members."
  value       = module.regent.members_topic
}

output "repository" {
  description = "The repository for the image."
  value       = module.regent.repository
}

output "alerts" {
  description = "The alerts."
  value       = module.regent.alerts
}
