output "agent_environment" {
  description = "The environment of an agent that calls the global Regent."
  value       = module.regent.agent_environment
}

output "regional_agent_environment" {
  description = "So, for the Regent of each region."
  value       = { for name, r in module.region : name => r.agent_environment }
}

output "store" {
  description = "The store of the global Regent, for `regent doctor`."
  value       = module.regent.store
}

output "stores" {
  description = "The stores of the regions."
  value       = { for name, r in module.region : name => r.store }
}

output "topic" {
  description = "The topic on which the global Regent announces changes."
  value       = module.regent.topic
}

output "members_topic" {
  description = "The topic on which its instances tell each other of members."
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
