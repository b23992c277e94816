# Two regions, each with a replica of one Spanner instance (eur6 has a third, voting-only replica elsewhere): any one may be lost, and
# leaders keep leading. Agents use one load balancer.
module "regent" {
  source = "../.."

  project_id               = var.project_id
  regions                  = ["europe-west4", "europe-west3"] # the first has the instance's leader
  image                    = var.image
  store                    = "spanner"
  spanner_config           = "eur6"
  spanner_edition          = "ENTERPRISE_PLUS"
  spanner_processing_units = 1000
  scheduler_region         = "europe-west3"
  events_region            = "europe-west4" # one for all instances: Pub/Sub orders events only among what one region was sent
  members                  = true           # or a quorum would count the members of one instance only; these need no order
  domain                   = var.domain
  ingress                  = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  invokers                 = var.agents
  access                   = templatefile("${path.module}/access.yaml", { project_id = var.project_id })
  notification_emails      = var.notification_emails
  stopped                  = var.stopped

  # Instances learn of a change in another region somewhat later.
  alert_thresholds = {
    unannounced_seconds = 90
  }
}
