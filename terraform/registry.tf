# The repository for Regent's images. Tags are immutable.
resource "google_artifact_registry_repository" "main" {
  project       = var.project_id
  location      = local.home
  repository_id = var.name
  format        = "DOCKER"
  description   = "Images of Regent."
  labels        = var.labels

  docker_config {
    immutable_tags = true
  }

  lifecycle {
    ignore_changes = [location] # that of the first region: a repository elsewhere would be empty
  }

  depends_on = [google_project_service.main]
}
