# One region, on Firestore: the cheapest for a few leases.
module "regent" {
  source = "../.."

  project_id          = var.project_id
  regions             = ["europe-west1"]
  image               = var.image
  store               = "firestore"
  invokers            = var.agents
  access              = templatefile("${path.module}/access.yaml", { project_id = var.project_id })
  notification_emails = var.notification_emails
  stopped             = var.stopped
}
