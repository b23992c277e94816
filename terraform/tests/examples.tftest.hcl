# Each example can be planned unchanged.

mock_provider "google" {}

variables {
  project_id          = "my-project"
  image               = "europe-west1-docker.pkg.dev/my-project/regent/regent:v1.2.3"
  agents              = ["serviceAccount:agent@my-project.iam.gserviceaccount.com"]
  notification_emails = ["oncall@example.com"]
}

run "firestore" {
  command = plan
  module {
    source = "./examples/firestore"
  }

  assert {
    condition     = output.store == "firestore:my-project/regent" && output.topic == "projects/my-project/topics/regent" && output.agent_environment.REGENT_AUDIENCE == "regent.my-project"
    error_message = "the outputs show another store, topic or audience"
  }
}

run "spanner" {
  command = plan
  module {
    source = "./examples/spanner"
  }

  assert {
    condition     = output.store == "spanner:projects/my-project/instances/regent/databases/regent"
    error_message = "the outputs show another store"
  }
}

run "multi_region" {
  command = plan
  module {
    source = "./examples/multi-region"
  }
  variables {
    domain = "regent.example.com"
  }

  assert {
    condition     = output.agent_environment.REGENT_SERVER == "https://regent.example.com" && output.agent_environment.REGENT_AUDIENCE == "https://regent.example.com"
    error_message = "agents do not use the load balancer"
  }
  assert {
    condition     = output.alerts["unannounced-events"].threshold == 90 && output.alerts["no-leader"].threshold == 60
    error_message = "the thresholds are not those of the example"
  }
}

run "regional_leaders" {
  command = plan
  module {
    source = "./examples/regional-leaders"
  }

  assert {
    condition     = output.store == "firestore:my-project/regent" && output.stores == { eu = "firestore:my-project/regent-eu", us = "firestore:my-project/regent-us" }
    error_message = "each Regent does not have a store of its own"
  }
}
