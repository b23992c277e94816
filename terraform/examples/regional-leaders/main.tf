# A Regent in each of two regions, and a global one above them. Each region elects its own leader of orders, in a store
# of its own, and goes on alone while the others cannot be reached. The leaders of the regions elect one among them, which leads
# only as long as it leads its region.
locals {
  regions = { eu = "europe-west1", us = "us-central1" }
}

# One Regent for each region.
module "region" {
  source   = "../.."
  for_each = local.regions

  name                = "regent-${each.key}"
  project_id          = var.project_id
  regions             = [each.value]
  image               = var.image
  store               = "firestore"
  firestore_database  = "regent-${each.key}"
  invokers            = concat(var.agents, ["serviceAccount:regent-server@${var.project_id}.iam.gserviceaccount.com"]) # the global one asks
  access              = templatefile("${path.module}/region.yaml", { project_id = var.project_id, region = each.key })
  notification_emails = var.notification_emails
  stopped             = contains(var.stopped_regions, each.key)
}

# The global one. An operator configures its election once, and those of the regions there:
# regent configure orders --policy '{"leadersOf":"orders."}'
module "regent" {
  source = "../.."

  project_id          = var.project_id
  regions             = ["europe-west1"]
  image               = var.image
  store               = "firestore"
  invokers            = var.agents
  peers               = { for name, r in module.region : name => { url = r.url, audience = r.audience } }
  access              = templatefile("${path.module}/access.yaml", { project_id = var.project_id })
  notification_emails = var.notification_emails
  stopped             = var.stopped
}
