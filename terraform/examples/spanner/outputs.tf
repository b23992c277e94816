output "agent_environment" {
  description = "The environment of an agent."
  value       = module.regent.agent_environment
}

output "audience" {
  description = "For whom agents have their ID tokens made out."
  value       = module.regent.audience
}

output "store" {
  description = "The store, for `regent migrate` and `regent doctor`."
  value       = module.regent.store
}

output "topic" {
  description = "The topic on which changes are announced."
  value       = module.regent.topic
}

output "repository" {
  description = "Where the image is pushed to."
  value       = module.regent.repository
}

output "alerts" {
  description = "What fires when."
  value       = module.regent.alerts
}
