# The tables come from the store's own file, so the module must be used together with its repository: as a
# source that ends in //terraform, or from a checkout.

locals {
  spanner_ddl = [
    for statement in split(";", join("\n", [
      for line in split("\n", file("${path.module}/../store/spanner/schema.sql")) : line if !startswith(line, "--")
    ])) : trimspace(statement) if trimspace(statement) != ""
  ]
}

resource "google_spanner_instance" "main" {
  count = local.on_spanner ? 1 : 0

  project                      = var.project_id
  name                         = var.name
  display_name                 = var.name
  config                       = coalesce(var.spanner_config, "regional-${local.home}")
  edition                      = var.spanner_edition
  processing_units             = var.spanner_processing_units
  default_backup_schedule_type = "NONE" # there is one below
  force_destroy                = false
  labels                       = var.labels

  lifecycle { # as for google_firestore_database.main
    prevent_destroy = true
    ignore_changes  = [config]
  }

  depends_on = [google_project_service.main]
}

resource "google_spanner_database" "main" {
  count = local.on_spanner ? 1 : 0

  project                  = var.project_id
  instance                 = google_spanner_instance.main[0].name
  name                     = var.spanner_database
  database_dialect         = "GOOGLE_STANDARD_SQL"
  version_retention_period = var.spanner_version_retention
  ddl                      = local.spanner_ddl
  enable_drop_protection   = true
  deletion_protection      = true

  lifecycle {
    prevent_destroy = true
    # `regent admin migrate` makes later versions: for the provider, different statements mean another database.
    ignore_changes = [ddl]
  }
}

resource "google_spanner_backup_schedule" "daily" {
  count = local.on_spanner ? 1 : 0

  project            = var.project_id
  instance           = google_spanner_instance.main[0].name
  database           = google_spanner_database.main[0].name
  name               = "daily"
  retention_duration = "${var.backup_retention_days * 24 * 3600}s"

  spec {
    cron_spec {
      text = "0 2 * * *"
    }
  }

  full_backup_spec {}
}
