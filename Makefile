# `make help` lists the commands. Those that touch a cluster go by $KUBECONFIG.
# OPERATOR=at (or another) means one operator instead of all.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

OPERATOR ?= all
VERSION ?= dev
IMG ?= fairlead:dev

OPERATORS := $(patsubst operators/%/operator.go,%,$(wildcard operators/*/operator.go))
BIN := $(CURDIR)/bin
CLUSTER := $(CURDIR)/.cluster
ASSETS := $(CLUSTER)/bin
LOCALCLUSTER := $(BIN)/localcluster
# kubectl: the user's own, or else the one that the local cluster is built with.
KUBECTL ?= $(or $(shell command -v kubectl),$(ASSETS)/kubectl)
CONFIG = operators$(if $(filter all,$(OPERATOR)),,/$(OPERATOR))/config

##@ The two commands

.PHONY: demo
demo: build ## From nothing to the operators at work on a local cluster, shown on the screen
	$(LOCALCLUSTER) run -- hack/demo.sh

.PHONY: test
test: verify lint unit apiserver-test localcluster-test e2e ## All that CI runs, from nothing

##@ The local cluster

.PHONY: up
up: build ## Start a local cluster with the operators in it; its kubeconfig is .cluster/kubeconfig
	$(LOCALCLUSTER) up
	LOCALCLUSTER_DIR=$(CLUSTER) KUBECONFIG=$(CLUSTER)/kubeconfig PATH=$(ASSETS):$$PATH hack/deploy.sh $(OPERATOR)

.PHONY: down
down: build-localcluster ## End the local cluster, with nothing left behind
	$(LOCALCLUSTER) down

##@ Development

.PHONY: build
build: build-localcluster ## Build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X example.com/fairlead/internal/kit/run.Version=$(VERSION)' -o $(BIN)/ ./cmd/...

.PHONY: build-localcluster
build-localcluster:
	go build -C localcluster -o $(BIN)/ .

.PHONY: run
run: ## Run the operators here, against $KUBECONFIG
	go run ./cmd/fairlead --metrics-bind-address=0 --zap-devel $(OPERATOR)

.PHONY: generate
generate: generators ## Generate Go code from the API types
	$(BIN)/controller-gen object paths=./api/...

.PHONY: manifests
manifests: generators ## Generate CRDs, RBAC and the API reference from the code
	hack/manifests.sh $(OPERATORS)
	$(BIN)/crd-ref-docs --source-path=api --config=docs/reference.yaml --renderer=markdown --output-path=docs/reference.md --log-level=ERROR

.PHONY: generators
generators:
	go build -C tools -o $(BIN)/ tool ./crdtrim

##@ Tests

.PHONY: unit
unit: ## The quick loop: tests that need nothing running
	go test ./...

.PHONY: apiserver-test
apiserver-test: assets ## Tests against a real API server, the crash-point sweep among them
	KUBEBUILDER_ASSETS=$(ASSETS) go test -race -tags apiserver -timeout 20m ./internal/... ./operators/...

.PHONY: e2e
e2e: build ## What only a real cluster can show, on a local cluster of its own
	$(LOCALCLUSTER) run -- go test -tags e2e -count 1 -timeout 30m ./test/e2e/...

.PHONY: localcluster-test
localcluster-test: assets ## The local cluster's own tests
	cd localcluster && go vet ./... && go test -tags cluster -count 1 -timeout 20m ./...

.PHONY: bench
bench: build ## The benchmarks; see bench/README.md
	$(LOCALCLUSTER) run -- go run ./bench

.PHONY: assets
assets: build-localcluster ## Build the Kubernetes binaries (minutes once, seconds later)
	$(LOCALCLUSTER) assets

.PHONY: lint
lint: ## go vet and golangci-lint
	go build -C tools/golangci-lint -o $(BIN)/ tool
	go vet -tags apiserver,e2e ./...
	$(BIN)/golangci-lint run --build-tags apiserver,e2e
	cd localcluster && go vet -tags cluster ./... && $(BIN)/golangci-lint run --config ../.golangci.yml --build-tags cluster

.PHONY: verify
verify: generate manifests ## Fail if generated files are not current
	@changes=$$(git status --porcelain -- api operators docs/reference.md); \
	if [ -n "$$changes" ]; then \
		echo "generated files were not current (run make generate manifests, and commit):"; echo "$$changes"; exit 1; fi

##@ A cluster of yours, by $KUBECONFIG

.PHONY: install
install: ## Install the CRDs
	$(KUBECTL) apply --server-side -k $(CONFIG)/crd

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them all objects of their kinds
	$(KUBECTL) delete --ignore-not-found -k $(CONFIG)/crd

.PHONY: deploy
deploy: ## Install CRDs, RBAC and the manager, with image $IMG
	$(KUBECTL) kustomize $(CONFIG)/default | sed 's|image: fairlead:dev|image: $(IMG)|' | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove what deploy installed, and with the CRDs all objects of their kinds
	$(KUBECTL) delete --ignore-not-found -k $(CONFIG)/default

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
