variable "project_id" {
  description = "The project to deploy to."
  type        = string
}

variable "image" {
  description = "Regent's image, pinned."
  type        = string
}

variable "agents" {
  description = "IAM members that may call the service. access.yaml says what they may do."
  type        = list(string)
}

variable "notification_emails" {
  description = "E-mail addresses for alerts."
  type        = list(string)
}

variable "stopped" {
  description = "Run no instance, while the store is moved or restored."
  type        = bool
  default     = false
}
