# Regent. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BUILD   := .build
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TOOL    := go tool -modfile=test/tools.mod
# Starts the emulators once for a whole run, and ends them after it.
WITH_EMULATORS := go run ./cmd/emulators --

# Tests and the shipped binary are built alike: static, without paths of this machine, and without what gRPC and
# Spanner's client have for service meshes and for pages of traces, a third of the binary. The race detector needs C.
export CGO_ENABLED := 0
TAGS := disable_grpc_modules,grpcnotrace
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath -tags=$(TAGS))
race: export CGO_ENABLED := 1

# Tests that need heavy dependencies have modules of their own. test/load/etcd, which measures, is none of them.
MODULES := test/dashboard test/sqlite test/terraform test/generated test/kubernetes
EACH    := for module in $(MODULES); do cd $(CURDIR)/$$module; echo "in $$module:";

# Tests that need Python, Node.js or a browser, or run long beside those of packages: make test-all.
OTHERS  := $(addprefix ./test/,browser clients examples python typescript)
# The longest come first; those of ./test/faults wait for those of ./test.
LONGEST := ./store/spanner ./test ./cmd/regent ./test/faults
PKG     ?= $(LONGEST) $(filter-out $(patsubst .%,regent%,$(LONGEST) $(OTHERS)),$(shell go list ./...))
# SHUFFLE=-shuffle=on runs tests in another order each time, and every package: results are not taken from the cache.
SHUFFLE  ?=
FUZZTIME ?= 30s
CROWD    ?= 10000
ELECTIONS ?= 100000
NIGHT    ?= $(BUILD)/night
IMAGE    ?= regent
ARCH     ?= $(shell go env GOHOSTARCH)
# Of make dev.
STORE    ?= firestore
LISTEN   ?= 127.0.0.1:8080
PROJECT  ?= regent-dev

.PHONY: help run dev building build image ko sbom test test-all check vulns prove prove-night race compare load fuzz emulators generate pictures

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Without the clients of Google Cloud there is a quarter to download, and two thirds to compile.
run: building ## serve on 127.0.0.1:8080 with a local store (ARGS="..." adds flags)
	@$(MAKE) -s build TAGS=$(TAGS),regent_local
	@$(BUILD)/regent serve $(ARGS)

dev: building build ## serve twice on the emulators, as on Google Cloud (STORE=spanner LISTEN=HOST:PORT)
	@go build -o $(BUILD)/regent-dev ./cmd/dev
	@$(BUILD)/regent-dev -regent $(BUILD)/regent -dir $(BUILD)/dev -store "$(STORE)" -listen "$(LISTEN)" -project "$(PROJECT)" -- $(ARGS)

building:
	@test -e $(BUILD)/regent || echo "building Regent, which takes a minute or two; from the second time on, seconds"

build: ## build the static binary .build/regent
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o $(BUILD)/regent ./cmd/regent

image: ## build the container image with Docker, as IMAGE (regent)
	docker build -f cmd/regent/Dockerfile --build-arg VERSION=$(VERSION) -t $(IMAGE) .

ko: ## build the same image with ko and push it to KO_DOCKER_REPO
	VERSION=$(VERSION) ko build --bare ./cmd/regent

sbom: ## build the binary of the image into .build/shipped, with its SBOM and its provenance (ARCH=arm64)
	@go run ./test/sbom -dir $(BUILD)/shipped -version $(VERSION) -arch $(ARCH)

test: ## run the tests in their short form, with the emulators if they are installed (PKG=./store/...)
	$(WITH_EMULATORS) go test -short -p 4 $(SHUFFLE) -timeout 20m $(PKG)

test-all: test ## also the tests with Python, Node.js, browsers, Kubernetes' client, Terraform and SQLite
	$(WITH_EMULATORS) go test -short $(SHUFFLE) -timeout 20m $(OTHERS)
	@$(EACH) go test -short -count=1 $(SHUFFLE) -timeout 10m ./...; done # the test cache does not see the files above a module

check: ## check format, vet, staticcheck, dead code, modules, imports, known vulnerabilities
	go test -count=1 ./test/style
	go test -run TestPlantedBugsBuild ./test/mutants
	@test -z "$$($(TOOL) gofumpt -l .)" || { echo "not formatted; run: $(TOOL) gofumpt -w ."; $(TOOL) gofumpt -l .; exit 1; }
	go vet ./...
	go fix -diff ./...
	$(TOOL) staticcheck ./...
	@! $(TOOL) deadcode -test ./... | grep -v example_test.go # examples that are read, and not run
	go mod tidy -diff
	@$(EACH) go vet ./...; go fix -diff ./...; go tool -modfile=$(CURDIR)/test/tools.mod staticcheck ./...; go mod tidy -diff; done
	@test/vulnerabilities.sh || test $$? = 75 # not checked, as it says

vulns: ## look for known vulnerabilities in what is linked; fails if their database cannot be reached
	@test/vulnerabilities.sh

# One in four of the quick set; each commit draws another one. ARGS="-share 1" does all.
prove: ## search for bugs in every way there is, a quarter of an hour, and report how far (ARGS="-only simulation")
	@$(WITH_EMULATORS) go run ./test/prove -share 4 -draw $(or $(shell git rev-list --count HEAD 2>/dev/null),0) $(ARGS)

prove-night: ## the same for a night, with a report in NIGHT (.build/night)
	@$(WITH_EMULATORS) go run ./test/prove -night -dir $(NIGHT) $(ARGS)

race: ## run all tests in their short form under the race detector
	$(WITH_EMULATORS) go test -race -short $(or $(SHUFFLE),-shuffle=on) -timeout 30m $(PKG)

compare: ## measure Regent beside etcd, and write the figures into test/load/etcd/README.md (ARGS="-rounds 1": only print)
	cd test/load/etcd && go test -count=1 -v -timeout 1h -run RegentBesideEtcd . $(or $(ARGS),-rounds 5 -long 2s -page README.md)

load: ## measure 10,000 waiters and 10,000 watchers (CROWD=10000), and 100,000 elections (ELECTIONS=100000)
	$(WITH_EMULATORS) go test -v -timeout 90m -run 'ACrowd|AnInstanceThatStops|ManyElections' ./test -crowd $(CROWD) -elections $(ELECTIONS) -work 6m

fuzz: ## run each fuzz target for FUZZTIME (30s), or with FUZZTIME="30s 16 3" every 16th from number 3 on
	@test/fuzz.sh $(FUZZTIME)

emulators: ## start the emulators, print their variables, and run until interrupted
	@go run ./cmd/emulators

generate: ## rewrite the JSON of package wire, the tables of httpapi/README.md and httpapi/mcp/README.md, and the licenses in the binary
	go generate ./leadership/wire
	go test ./httpapi ./httpapi/mcp -run Readme -update
	go test ./cmd/regent -run LicensesAreThose -update

pictures: build ## draw the session of README.md and the dashboard anew, with Chromium and the real server
	go run ./test/pictures -regent $(BUILD)/regent README.md leadership/session.svg
	test/pictures/dashboard.sh $(BUILD)/regent httpapi/dashboard
