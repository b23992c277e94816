variable "project_id" {
  description = "The project to deploy to."
  type        = string
}

variable "image" {
  description = "The image of Regent, pinned."
  type        = string
}

variable "agents" {
  description = "Who may reach the service, as IAM members. What they may do there stands in policy.yaml."
  type        = list(string)
}

variable "notification_emails" {
  description = "Who is told of alerts."
  type        = list(string)
}
