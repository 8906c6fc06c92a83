# `make help` lists the commands. Those that touch a cluster go by $KUBECONFIG.
# OPERATOR=at (or another) means one operator instead of all.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
# Where Go's own installation puts it: sudo leaves that out.
export PATH := $(PATH):/usr/local/go/bin
# With cgo, Go would compile nearly all packages a second time; only the race detector needs it.
export CGO_ENABLED ?= 0
# go vet is lint's: with each run of tests it would look at all that they import, anew. What is compiled without the
# folder's path is there for the next clone, and for the release, too.
export GOFLAGS := $(GOFLAGS) -vet=off -trimpath

OPERATOR ?= all
# The version being worked on. Released ones are in hack/releases.
VERSION ?= 0.1.0
# What images are called: a place in a registry of yours. Without one they stay
# on this machine, and the local cluster's is fairlead:dev.
IMAGE_TAG_BASE ?= fairlead
IMG ?= $(if $(filter fairlead,$(IMAGE_TAG_BASE)),fairlead:dev,$(IMAGE_TAG_BASE):v$(VERSION))
PLATFORMS ?= linux/amd64,linux/arm64

OPERATORS := $(patsubst operators/%/operator.go,%,$(wildcard operators/*/operator.go))
BIN := $(CURDIR)/bin
CLUSTER := $(CURDIR)/.cluster
ASSETS := $(CLUSTER)/bin
# The versions of etcd that EtcdCluster is tested with: etcd, etcdctl and etcdutl in a folder each.
ETCD_ASSETS := $(CLUSTER)/etcd
LOCALCLUSTER := $(BIN)/localcluster
# What tests of $OPERATOR need: only those of etcd's backups need storage, and so npm.
STORAGE = $(if $(filter all etcd,$(OPERATOR)),build-storage)
# kubectl: the user's own, or else the one that the local cluster is built with.
KUBECTL ?= $(or $(shell command -v kubectl),$(ASSETS)/kubectl)
CONFIG = operators$(if $(filter all,$(OPERATOR)),,/$(OPERATOR))/config
# The kustomize overlay to deploy: default, or namespaced.
OVERLAY ?= default
# Says what the machine lacks; true goes on without asking.
DOCTOR ?= hack/doctor.sh
# What to do with a cluster of one's own, for those who have one at hand.
YOURS = @[ "$${KUBECONFIG:-$(CLUSTER)/kubeconfig}" = "$(CLUSTER)/kubeconfig" ] || \
	echo "This starts a cluster of its own. With the one of your KUBECONFIG: make install run, or make deploy IMG=..."
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)$(if $(shell git status --porcelain 2>/dev/null),-dirty)
# The programs to build: all, or those in the image.
PROGRAMS ?= ./cmd/...
IMAGE_PROGRAMS := ./cmd/fairlead ./cmd/fairlead-at-start ./cmd/fairlead-etcd-agent
DIST = $(BIN)/dist -version $(VERSION) -image-base $(IMAGE_TAG_BASE) -plugin-url '$(PLUGIN_URL)' -operator $(OPERATOR) -platforms $(PLATFORMS) \
	$(if $(filter file,$(origin IMG)),,-image $(IMG))

##@ The two commands

.PHONY: demo
demo: ## From nothing to the operators at work on a local cluster, shown on the screen
	$(YOURS)
	@$(DOCTOR) --quiet demo
	@PROGRAMS='$(IMAGE_PROGRAMS)' hack/ahead.sh demo $(MAKE) --no-print-directory demo-run

.PHONY: demo-run
demo-run: build-localcluster
	hack/first-look.sh
	$(LOCALCLUSTER) run -- hack/demo.sh

.PHONY: test
test: ## What a first day needs: unit tests, tests with an API server, walkthroughs of all kinds on a local cluster
	@$(DOCTOR) --quiet test
	@PROGRAMS='$(PROGRAMS)' hack/ahead.sh test $(MAKE) --no-print-directory first-tests walkthroughs

# What mostly waits goes side by side with something else: local clusters, and tests of programs. What judges
# time, or that no request is lost, runs with nothing beside it.
TOGETHER = $(MAKE) --no-print-directory --output-sync=target

# What not every landing has to run is drawn (internal/testkit/draw): by the number of commits, and of an operator that
# changed since the last landing all of it. The first commit of a landing stores which commit it
# began from; if that is forgotten, more counts as changed.
ci $(if $(RACE),test): export CI_SEED ?= $(shell git rev-list --count HEAD)
ci $(if $(RACE),test): export CI_BASE ?= $(shell cat .ci/landed)

.PHONY: ci
ci: ci-full ## What every landing runs after make test RACE=yes: ci-full, but of its long suites a part, drawn by CI_SEED=...

.PHONY: ci-full
ci-full: ## Lint, crash-point sweep, end-to-end, install and OLM tests; every night, and before a release
	@$(DOCTOR) --quiet ci
	@[ -z "$$CI_SEED" ] || echo "drawn by CI_SEED=$$CI_SEED, and for what changed since CI_BASE=$$CI_BASE"
	targets=$$($(DRAWN) localcluster-test:localcluster 'dist-test:tools/dist,hack/releases,operators/**/*.yaml') && $(TOGETHER) -j3 programs-test static $$targets
	$(MAKE) --no-print-directory sweep
	targets=$$($(DRAWN) ipv6-walkthroughs:localcluster) && $(TOGETHER) -j2 e2e install-test $$targets SKIP='Walkthrough|^TestAlone'
	$(MAKE) --no-print-directory e2e RUN='^TestAlone'
	$(MAKE) --no-print-directory nodes-test RUN='^TestDrain$$'

# Prints those of its arguments that CI_SEED draws, or for which something has changed.
DRAWN = go run ./internal/testkit/draw/drawn

.PHONY: static
static: verify lint rules-test judge-test

# Those for which make test has no time, and the race detector is worth it.
.PHONY: programs-test
programs-test: assets etcd-versions $(STORAGE)
	$(RACE_TEST) $(NEED_PROGRAMS)

##@ The local cluster

.PHONY: up
up: ## Start a local cluster with the operators in it; its kubeconfig is .cluster/kubeconfig
	$(YOURS)
	@$(DOCTOR) --quiet up
	@$(MAKE) --no-print-directory build
	$(LOCALCLUSTER) up
	LOCALCLUSTER_DIR=$(CLUSTER) KUBECONFIG=$(CLUSTER)/kubeconfig PATH=$(ASSETS):$$PATH hack/deploy.sh $(OPERATOR)

.PHONY: down
down: build-localcluster ## End the local cluster, with nothing left behind
	$(LOCALCLUSTER) down

.PHONY: doctor
doctor: ## What this machine lacks for them, each with the command that mends it
	@$(DOCTOR) all

##@ Development

.PHONY: build
build: build-localcluster ## Build the programs into bin/
	$(LOCALCLUSTER) build --title 'building the operators' -o $(BIN)/ -- -ldflags '-s -w -X example.com/fairlead/internal/kit/run.Version=$(VERSION) -X example.com/fairlead/internal/kit/run.Commit=$(COMMIT)' $(PROGRAMS)

.PHONY: build-localcluster
build-localcluster:
	go build -C localcluster -ldflags '-X example.com/fairlead/localcluster/internal/build.source=$(CURDIR)/localcluster' -o $(BIN)/ .

# Azurite is installed once for each lock file.
AZURITE := $(BIN)/azurite

.PHONY: build-storage
build-storage: ## Build the servers of object storage that backups are tested with (minutes once, seconds later; needs npm)
	go build -C tools/storage -ldflags '-s -w' -o $(BIN)/ tool
	@cmp -s tools/azurite/package-lock.json $(AZURITE)/installed || { \
		rm -rf $(AZURITE) && mkdir -p $(AZURITE) && cp tools/azurite/package*.json $(AZURITE)/ && \
		npm ci --prefix $(AZURITE) --ignore-scripts --no-audit --no-fund --loglevel=error && \
		cp tools/azurite/package-lock.json $(AZURITE)/installed; }
	@[ -e $(AZURITE)-blob ] || ln -sf azurite/node_modules/.bin/azurite-blob $(AZURITE)-blob

.PHONY: run
run: ## Run the operators here, against $KUBECONFIG; programs in pods are of image $IMG
	AT_START_IMAGE=$(IMG) ETCD_AGENT_IMAGE=$(IMG) go run ./cmd/fairlead --metrics-bind-address=0 --zap-devel $(OPERATOR)

.PHONY: generate
generate: generators ## Generate Go code from the API types
	$(BIN)/controller-gen object paths=./api/...

.PHONY: manifests
manifests: generators ## Generate CRDs, RBAC, PrometheusRules, dashboards, health checks for Argo CD, the API reference and the page of metrics
	hack/manifests.sh $(OPERATORS)
	$(BIN)/crd-ref-docs --source-path=api --config=docs/reference.yaml --renderer=markdown --output-path=docs/reference.md --log-level=ERROR
	go run ./hack/metrics > docs/metrics.md

.PHONY: generators
generators:
	go build -C tools -o $(BIN)/ tool ./crdtrim
	go build -C tools/dashboards -o $(BIN)/ .

##@ Tests

.PHONY: check
check: verify unit dist-test judge-test lint ## The quick answer: generated files, format, lint and unit tests of all modules

.PHONY: unit
unit: ## Tests that need nothing running
	go test -timeout 60m ./...
	go test -C localcluster $(LOCALCLUSTER_PACKAGES)
	go test -C tools ./crdtrim

.PHONY: dist-test
dist-test: build-cosign # images for all platforms, charts, bundles and catalog, made twice
	go test -C tools/dist -timeout 60m ./...

.PHONY: judge-test
judge-test: # what the judge of make torture accepts, and what it refuses
	go test -C test/torture .

.PHONY: rules-test
rules-test: build-prometheus ## What alerts, and what does not: the tests of the alert rules
	$(BIN)/promtool check rules --lint=all --lint-fatal operators/*/config/prometheus/rules.yaml
	$(BIN)/promtool test rules operators/*/config/prometheus/rules_test.yaml

.PHONY: build-prometheus
build-prometheus: # promtool, Prometheus and Alertmanager (minutes once, seconds later)
	hack/prometheus.sh

.PHONY: pictures
pictures: ## Draw the dashboards into docs/pictures, of what Prometheus answers in the end-to-end test of the alerts
	$(MAKE) --no-print-directory e2e OPERATOR=all RUN='^TestSerialAlertsAboutObjects$$' KEEP_SERIES=$(BIN)/series.json
	go build -C tools/dashboards -o $(BIN)/ ./picture
	$(BIN)/picture $(BIN)/series.json docs/pictures

HISTORIES = 1000000
SEED = 1

.PHONY: simulate
simulate: ## Play HISTORIES histories of the stories of $OPERATOR from SEED on, with whatever can go wrong
	HISTORIES=$(HISTORIES) SEED=$(SEED) go test -count 1 -v -p 1 -timeout 24h -run '^TestSimulation$$' $(if $(filter all,$(OPERATOR)),./operators/...,./operators/$(OPERATOR)/...)

# What was linked from Kubernetes is not linted: that would type-check all of it.
LOCALCLUSTER_PACKAGES = . ./internal/... ./components/pause

.PHONY: lint
lint: generators ## go vet, golangci-lint, kube-api-linter over api, and actionlint over .github/workflows
	go build -C tools/golangci-lint -o $(BIN)/ .
	$(BIN)/golangci-lint run --build-tags apiserver,e2e
	cd localcluster && $(BIN)/golangci-lint run --config ../.golangci.yml --build-tags cluster $(LOCALCLUSTER_PACKAGES)
	cd tools && $(BIN)/golangci-lint run --config ../.golangci.yml
	cd tools/dist && $(BIN)/golangci-lint run --config ../../.golangci.yml
	cd tools/olm && $(BIN)/golangci-lint run --config ../../.golangci.yml
	cd tools/dashboards && $(BIN)/golangci-lint run --config ../../.golangci.yml
	cd test/torture && $(BIN)/golangci-lint run --config ../../.golangci.yml
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml

.PHONY: shellcheck
shellcheck: ## ShellCheck over the scripts; it is not built, and no part of ci: apt-get install shellcheck
	shellcheck hack/*.sh .ci/run

.PHONY: vulncheck
vulncheck: generators ## Name the known vulnerabilities that the code reaches (minutes; no part of test)
	hack/vulncheck.sh

.PHONY: verify
verify: generators ## Fail if generated files are not current
	hack/verify.sh

# Less garbage collection, also in the servers, as long as a process has less than 2 GiB.
APISERVER_TEST = GOGC=400 GOMEMLIMIT=2GiB KUBEBUILDER_ASSETS=$(ASSETS) ETCD_ASSETS=$(ETCD_ASSETS) STORAGE_ASSETS=$(BIN) go test -tags apiserver -timeout 60m
# The race detector would make these take three times as long, or as much memory.
LONG = ^Test(Sweep|Fields|Memory$$)
# These need no API server, and have one goroutine.
SIMULATED = ^Test(Simulation$$|SimulationFindsPlanted|SimulationIsDeterministic|SimulationUnderPolicies|OnceFailed|PlantedFlaws)
# These wait for half of their time, so there are more packages at a time than processors.
RACE_TEST = CGO_ENABLED=1 $(APISERVER_TEST) -race -p 4 -skip '$(LONG)|$(SIMULATED)'
# What takes longest begins first: one that begins last would run alone.
LONGEST = $(addprefix ./operators/,etcd/cluster webserver memcached etcd/backup at)
TESTED = $(if $(filter all,$(OPERATOR)),$(LONGEST) ./internal/... ./operators/...,./operators/$(OPERATOR)/...)
# Those with a test of such a name: the tests of the others would be linked for nothing.
having = $(if $(filter all,$(OPERATOR)),$(LONGEST)) $(sort $(addprefix ./,$(dir $(shell \
	grep -lrE --include='*_test.go' '^func $(subst ^,,$(subst $$,,$(1)))' $(if $(filter all,$(OPERATOR)),internal operators,operators/$(OPERATOR))))))
# With an API server, these also need versions of etcd, and servers of object storage. The first waits for most of its time.
NEED_PROGRAMS = ./operators/etcd/store/... ./operators/etcd/agent/... ./operators/etcd/members/...
MOST = $$(go list $(LONGEST) ./... | grep -vxF "$$(go list $(NEED_PROGRAMS))")

.PHONY: apiserver-test
apiserver-test: assets etcd-versions $(STORAGE) ## Tests of $OPERATOR against a real API server, the crash-point sweep among them
	$(RACE_TEST) $(TESTED)
	$(MAKE) --no-print-directory sweep

.PHONY: sweep
sweep: assets etcd-versions $(STORAGE) ## The crash-point sweep of $OPERATOR, and what else is long
	$(APISERVER_TEST) -run '$(LONG)' $(call having,$(LONG))

# RACE=yes is CI's: it finds data races as well, which takes less than the same tests once more.
.PHONY: first-tests
first-tests: assets ## unit, and those tests with an API server that are over in minutes
	$(if $(RACE),$(TOGETHER) -j3 store-test simulated race-test,go test $(NEED_PROGRAMS) && $(APISERVER_TEST) -skip '$(LONG)' $(MOST))
	go test -C localcluster $(LOCALCLUSTER_PACKAGES)
	go test -C tools ./crdtrim

# Most of a minute these wait for servers that hang.
.PHONY: store-test
store-test:
	go test $(NEED_PROGRAMS)

.PHONY: simulated
simulated:
	go test -timeout 60m -run '$(SIMULATED)' $(call having,$(SIMULATED))

.PHONY: race-test
race-test:
	$(RACE_TEST) $(MOST)

.PHONY: walkthroughs
walkthroughs: build ## The guides of all kinds, word for word, on a local cluster of its own; NETWORK='--family ipv6' is another one
	$(LOCALCLUSTER) run --images $(GUIDE_IMAGES) $(NETWORK) -- env RUN='Walkthrough' hack/e2e.sh all

# How its network differs from the usual one.
NETWORK ?=

# CI has IPv4 in make test, and IPv6 and another domain after that.
.PHONY: ipv6-walkthroughs
ipv6-walkthroughs:
	$(MAKE) --no-print-directory walkthroughs NETWORK='--family ipv6 --domain example.internal'

# The images that they use.
GUIDE_IMAGES = memcached:1.6.18,memcached:1.6.38,memcached:1.6.45,nginx:1.22.1,nginx:1.26.3,quay.io/coreos/etcd:v3.6.16

.PHONY: localcluster-test
localcluster-test: assets ## The local cluster's own tests
	cd localcluster && go test -tags cluster -count 1 -timeout 20m .

.PHONY: nodes-test
nodes-test: build ## Nodes that are drained and lost, on a local cluster of three
	$(LOCALCLUSTER) run --images $(GUIDE_IMAGES) --nodes 3 --zones a,b,c -- \
		sh -c 'hack/deploy.sh all && go test -tags e2e -count 1 -timeout 30m -v ./test/e2e/nodes/ $(if $(RUN),-run "$(RUN)")'

.PHONY: e2e
e2e: build build-dist $(if $(filter command,$(origin KUBECONFIG)),,$(STORAGE) $(if $(filter all,$(OPERATOR)),build-prometheus)) ## What only a real cluster can show of $OPERATOR, on a local cluster of its own or on KUBECONFIG=...
	$(if $(filter command,$(origin KUBECONFIG)),,$(LOCALCLUSTER) run --images all -- )hack/e2e.sh $(OPERATOR)

.PHONY: soak
soak: build build-dist ## 20 minutes of etcd under load while members and the operator are killed; SEED=... repeats one
	RUN='^TestSoak$$' SEED=$(if $(filter file,$(origin SEED)),,$(SEED)) $(LOCALCLUSTER) run --images all -- hack/e2e.sh etcd

# For how long rounds of make torture are begun.
TORTURE = 15m

.PHONY: torture
torture: build ## Etcd on three nodes, under each fault there is for TORTURE=15m, judged by etcd's own validators; SEED=... repeats an order of faults
	go build -C test/torture -o $(BIN)/ .
	$(LOCALCLUSTER) run --images quay.io/coreos/etcd:v3.6.16,quay.io/coreos/etcd:v3.7.3 --nodes 3 --zones a,b,c -- \
		sh -c 'hack/deploy.sh etcd && bin/torture -duration $(TORTURE) $(if $(filter file,$(origin SEED)),,-seed $(SEED))'

.PHONY: install-test
install-test: build build-dist ## Install, upgrade and uninstall in every way, on a local cluster of its own
	go build -C tools/helm -o $(BIN)/ tool
	go build -C tools/helm3 -o $(BIN)/helm3 tool
	go build -C tools/krew -o $(BIN)/ sigs.k8s.io/krew/cmd/krew
	go build -C tools/olm -tags containers_image_openpgp -ldflags '-s -w' -o $(BIN)/olm/ tool ./...
	$(LOCALCLUSTER) run --images all -- go test -tags e2e -count 1 -timeout 60m ./test/e2e/install/

# The releases that README.md names.
KUBERNETES ?= v1.31.0 v1.36.3 v1.37.2

.PHONY: test-matrix
test-matrix: build build-storage ## API-server tests and walkthroughs on the releases KUBERNETES="v1.31.0 v1.36.3 ..."
	hack/matrix.sh $(KUBERNETES)

.PHONY: bench
bench: build bench-programs ## The benchmarks; see bench/README.md
	$(LOCALCLUSTER) run -- go run ./bench -charts $(BIN)/charts

.PHONY: plots
plots: ## Draw what the benchmarks measured last into bench/
	go build -C tools/dashboards -o $(BIN)/ ./picture
	$(BIN)/picture charts bench/growth.svg $(BIN)/charts/scale*.json
	$(BIN)/picture charts bench/lateness.svg $(BIN)/charts/steady.json
	$(BIN)/picture charts bench/gaps.svg $(BIN)/charts/etcd-kills.json

.PHONY: bench-programs
bench-programs: # the S3 gateway, and what backups are measured against
	go build -C tools/storage -ldflags '-s -w' -o $(BIN)/ github.com/versity/versitygw/cmd/versitygw
	go build -ldflags '-s -w' -o $(BIN)/ ./bench/s3pipe ./bench/slowregistry

.PHONY: assets
assets: build-localcluster ## Build the binaries of Kubernetes (minutes once, seconds later)
	$(LOCALCLUSTER) assets

.PHONY: etcd-versions
etcd-versions: build-localcluster # those of the tests
	$(LOCALCLUSTER) etcd

##@ A cluster of yours, by $KUBECONFIG

.PHONY: image
image: build-dist ## The image $IMG as dist/fairlead.tar, for kind, minikube, k3d or containerd, and its manifests
	$(DIST) -image $(IMG) -platforms $(if $(filter file,$(origin PLATFORMS)),linux/$$(go env GOARCH),$(PLATFORMS)) local

.PHONY: install
install: ## Install the CRDs
	$(KUBECTL) apply --server-side -k $(CONFIG)/crd

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them all objects of their kinds
	$(KUBECTL) delete --ignore-not-found -k $(CONFIG)/crd

.PHONY: deploy
deploy: ## Install CRDs, RBAC and the manager, with image $IMG
	KUBECTL=$(KUBECTL) hack/kustomize.sh $(CONFIG)/$(OVERLAY) $(IMG) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove what deploy installed, and with the CRDs all objects of their kinds
	$(KUBECTL) delete --ignore-not-found -k $(CONFIG)/$(OVERLAY)

##@ To publish, under $IMAGE_TAG_BASE; everything goes to dist/

# The Go that builds what is published, which the go command fetches: another patch release has other bytes, and a library
# with other vulnerabilities.
RELEASE_GO ?= go1.26.11
release build-installer charts docker-build docker-push bundle bundle-push catalog-build catalog-push charts-push plugins vex vulncheck sign verify-release: \
	export GOTOOLCHAIN = $(RELEASE_GO)

.PHONY: release
release: build-dist ## All of it for $VERSION, with changelog and checksums
	$(DIST) release

.PHONY: build-installer
build-installer: build-dist ## Manifests for kubectl apply -f
	$(DIST) yaml

.PHONY: charts
charts: build-dist ## Helm charts
	$(DIST) charts

.PHONY: docker-build
docker-build: build-dist ## The manager's image $IMG for $PLATFORMS, and its SBOM; needs no Docker
	$(DIST) image

.PHONY: docker-push
docker-push: build-dist ## Publish the manager's image
	$(DIST) push image

.PHONY: bundle
bundle: build-dist ## OLM bundles, as folders and as images
	$(DIST) bundles

.PHONY: bundle-build
bundle-build: bundle

.PHONY: bundle-push
bundle-push: build-dist ## Publish the bundles' images
	$(DIST) push bundles

.PHONY: catalog-build
catalog-build: build-dist ## The OLM catalog of all versions, and its image
	$(DIST) catalog

.PHONY: catalog-push
catalog-push: build-dist ## Publish the catalog's image
	$(DIST) push catalog

.PHONY: charts-push
charts-push: build-dist ## Publish the charts, at oci://$IMAGE_TAG_BASE/charts
	$(DIST) push charts

# Where its archives will be downloaded from, unless it is https://fairlead.example.com/releases/v$(VERSION).
PLUGIN_URL ?=

.PHONY: plugins
plugins: build-dist ## The plugin of kubectl for six platforms, and its manifests for Krew (minutes once)
	$(DIST) plugins

# The private key to sign with and the public one to check with, as cosign takes them: a file, env://VARIABLE, a KMS's URI.
# Without them it is the OIDC token of a CI, of whom to check against COSIGN_IDENTITY and COSIGN_ISSUER.
COSIGN_KEY ?=
COSIGN_PUBLIC_KEY ?=
COSIGN_IDENTITY ?=
COSIGN_ISSUER ?=

.PHONY: vex
vex: build-dist generators ## Which known vulnerabilities do not reach the image, and which do, as of today: dist/vex.json (minutes)
	$(DIST) -govulncheck $(BIN)/govulncheck -vulnerabilities "$$(hack/vulnerabilities.sh)" vex

.PHONY: sign
sign: build-dist build-cosign ## Sign the release in dist/ and its published images, by $COSIGN_KEY or the OIDC token of a CI
	$(DIST) -cosign $(BIN)/cosign -key '$(COSIGN_KEY)' sign

.PHONY: verify-release
verify-release: build-dist build-cosign ## Check these signatures, and that this commit makes the same files once more
	$(DIST) -cosign $(BIN)/cosign -key '$(COSIGN_PUBLIC_KEY)' -identity '$(COSIGN_IDENTITY)' -issuer '$(COSIGN_ISSUER)' verify

.PHONY: build-cosign
build-cosign: # minutes once, seconds later
	go build -C tools/cosign -ldflags '-s -w' -o $(BIN)/ tool

.PHONY: build-dist
build-dist:
	go build -C tools/dist -o $(BIN)/ .

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
