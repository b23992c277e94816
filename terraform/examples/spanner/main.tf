# One region, on Spanner: many leases that are renewed often.
module "regent" {
  source = "../.."

  project_id               = var.project_id
  regions                  = ["us-central1"]
  image                    = var.image
  store                    = "spanner"
  spanner_processing_units = 100
  invokers                 = var.agents
  access                   = templatefile("${path.module}/access.yaml", { project_id = var.project_id })
  notification_emails      = var.notification_emails
  stopped                  = var.stopped
}
