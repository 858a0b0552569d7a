export GOTOOLCHAIN := auto
# Programs that run on any Linux, the same bytes wherever the checkout is, and
# everything compiled once for them, for tests and for the linter.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

GO        ?= go
# A tool with a module of its own.
HELM      := $(GO) tool -modfile=tools/helm/go.mod helm
BIN       := bin/gatehouse
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TESTFLAGS ?=
# How many packages are tested at a time.
PARALLEL  ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# What `make run` serves, and further flags for it, such as RUN_FLAGS='--bind ::1'.
DIR       ?= examples/quickstart
RUN_FLAGS ?= --port-offset 8000
# Such as CLUSTER_FLAGS='--channel standard'.
CLUSTER_FLAGS ?=
# Such as BENCH_FLAGS=--bars=report, to see the figures of a busy machine.
BENCH_FLAGS ?=
# Such as SCALE_FLAGS='-only kill,leader'; ten idle minutes show what a minute hides.
SCALE_FLAGS ?= -idle 10m
# Such as FLEET_FLAGS='-proxies 100 -routes 1000 -bars=report'.
FLEET_FLAGS ?=
# What there are binaries for.
PLATFORMS ?= linux-amd64 linux-arm64 darwin-arm64
# How long each target is fuzzed, and how many mutated objects go through the pipelines.
FUZZTIME  ?= 5m
MUTATIONS ?= 100000
# The image's name, and what `make image` does with it: IMAGE_TO=--push pushes.
IMAGE     ?= ghcr.io/gatehouse-dev/gatehouse:$(VERSION)
IMAGE_TO  ?= --output $(CURDIR)/bin/image.tar

.DEFAULT_GOAL := help
.PHONY: help build envoy run image release cluster cluster-down test test-slow race fuzz conformance upgrade neighbours lint licences vulnerabilities bench bench-cluster scale fleet faults generate clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

build: ## Build bin/gatehouse
	$(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/gatehouse

envoy: build ## Fetch the official Envoy into your cache, unless there is one
	@$(BIN) envoy path >/dev/null 2>&1 || $(BIN) envoy install

# The backends come first: where one of their ports is taken, that is said and
# nothing runs. They end with what they run.
run: envoy ## Serve examples/quickstart at 127.0.0.1:8080, with two echo backends
	@exec $(BIN) echo --listen v1=127.0.0.1:3001 --listen v2=127.0.0.1:3002 -- \
		$(BIN) run $(DIR) $(RUN_FLAGS)

# A module of its own, so that its dependencies never meet ours.
image: envoy ## Pack Gatehouse and Envoy as bin/image.tar, for docker load or ctr import, and list what is in it
	@envoy="$$($(BIN) envoy path)" && \
		version="$$("$$envoy" --version | sed -n 's|.*version: [^/]*/\([^/]*\)/.*|\1|p')" && \
		$(GO) run -C tools/image . --name $(IMAGE) $(IMAGE_TO) --sbom $(CURDIR)/bin/image.spdx.json \
		--versions gatehouse=$(VERSION),envoy=$$version \
		--labels org.opencontainers.image.title=gatehouse,org.opencontainers.image.version=$(VERSION) \
		$(CURDIR)/$(BIN) "$$envoy"

release: image ## Put the files of a release into bin/release, with their checksums
	rm -rf bin/release && mkdir -p bin/release
	for on in $(PLATFORMS); do GOOS=$${on%-*} GOARCH=$${on#*-} \
		$(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/release/gatehouse-$$on ./cmd/gatehouse || exit 1; done
	cp config/base.yaml config/install.yaml bin/image.tar bin/image.spdx.json bin/release
	$(HELM) package charts/gatehouse --destination bin/release
	cd bin/release && sha256sum * >SHA256SUMS

cluster: ## Bring up a one-node Kubernetes to test with (Linux, root)
	$(GO) run ./test/cluster/node up $(CLUSTER_FLAGS)

cluster-down: ## Remove it
	$(GO) run ./test/cluster/node down

# Tests that take long, by the line that marks them, so that none is forgotten.
SLOW_FILES = $(shell grep -rl --include='*_test.go' 'slow[.]Skip' cmd internal test)
SLOW_TESTS = $(sort $(shell awk -F '[^A-Za-z0-9_]+' '/^func Test/ {name = $$2} /slow[.]Skip/ {print name}' $(SLOW_FILES)))
SPACE     := $(subst ,, )

# Most tests wait for other processes, so more packages run at a time than there are
# processors, and those that take longest begin first. The end-to-end tests come last
# and alone, since they look at times. GOGC=400: there is memory enough to look for garbage
# less often. The linter vets.
FIRST = $(addprefix ./internal/,cluster status/writer source/kube proxy identity standalone agent envoy)
test test-slow: export GATEHOUSE_BIN := $(CURDIR)/$(BIN)
test test-slow: export GOGC := 400
test: envoy ## Run the tests, with the real Envoy (TESTFLAGS='-run X -v' for more)
	$(GO) test -vet=off -timeout 20m -p $(PARALLEL) $(TESTFLAGS) $(FIRST) $$($(GO) list ./... | grep -v '/test/e2e$$')
	$(GO) test -C examples/colorpolicy -timeout 20m $(TESTFLAGS) ./...
	$(GO) test -C test/dashboards -timeout 20m $(TESTFLAGS) ./...
	$(GO) test -vet=off -timeout 20m $(TESTFLAGS) ./test/e2e
	@echo "passed; make test-slow runs the $(words $(SLOW_TESTS)) that take long: $(SLOW_TESTS)"

test-slow: export GATEHOUSE_SLOW := 1
test-slow: envoy ## Run the tests that take long, which make test leaves out
	$(GO) test -timeout 20m -p 1 $(TESTFLAGS) -run '^($(subst $(SPACE),|,$(SLOW_TESTS)))$$' $(addprefix ./,$(sort $(dir $(SLOW_FILES))))

# Packages with goroutines, by what stands in them, so that none is forgotten.
CONCURRENT = $(addprefix ./,$(sort $(dir $(shell grep -rlE --include='*.go' '^[[:space:]]*go [a-z]|[.]Go\b' cmd internal test/apiserver))))

race: envoy ## Test the packages with goroutines under the race detector (needs a C compiler)
	CGO_ENABLED=1 GATEHOUSE_SLOW=1 GOGC=400 GATEHOUSE_BIN=$(CURDIR)/$(BIN) $(GO) test -race -timeout 30m -p $(shell expr $(PARALLEL) - 1) $(TESTFLAGS) $(CONCURRENT)

fuzz: ## Fuzz every parser of what comes from outside, and the pipelines (FUZZTIME=5m each, MUTATIONS=100000)
	test/fuzz/run $(FUZZTIME)
	$(GO) test -count=1 -timeout 3h ./test/golden -run TestMutations -v -mutations $(MUTATIONS) -seed 0

conformance: ## Run the Gateway API's own suite in a cluster of its own (Linux, root; CHANNEL=standard, MODE=static-mode or apart)
	test/conformance/run $(CONFORMANCE_FLAGS)

upgrade: ## Upgrade the last release and go back, under load, in a cluster of its own (Linux, root; FORMER=TAG)
	test/chart/upgrade

neighbours: ## Run blueprints beside cert-manager and others, built from their modules (Linux, root)
	test/neighbours/run $(TESTFLAGS)

lint: ## Check style and the import rules
	$(GO) tool -modfile=tools/go.mod golangci-lint run --allow-parallel-runners

licences: ## Check the licences of what is in the binary
	$(GO) run -C tools ./licences

vulnerabilities: ## Look for known vulnerabilities that our code reaches, where the Go database can be
	tools/vulnerabilities

bench: envoy ## Measure changes at 100 to 20,000 routes against the bars (BENCH_FLAGS=--bars=report: only print)
	GATEHOUSE_BIN=$(CURDIR)/$(BIN) $(GO) run ./test/bench $(BENCH_FLAGS)

bench-cluster: ## Measure the shapes of the public Gateway API benchmark in a cluster of its own (Linux, root; BENCH_FLAGS, KEEP=1)
	test/bench/cluster/run $(BENCH_FLAGS)

scale: ## Measure 1,000 routes in a cluster of its own against the bars (Linux, root; SCALE_FLAGS, KEEP=1)
	test/scale/run $(SCALE_FLAGS)

fleet: envoy ## Measure a controller with 1,000 simulated proxies and 5,000 routes against the bars (FLEET_FLAGS='-proxies 100 -bars=report')
	GATEHOUSE_BIN=$(CURDIR)/$(BIN) $(GO) test -vet=off -count=1 -timeout 60m -v -run '^TestBars$$' ./test/fleet \
		-args -proxies 1000 -record bench/results/bars/09.json $(FLEET_FLAGS)

# By the table of test/faults/README.md, which a test there holds to what there is.
FAULT_TESTS = $(sort $(shell grep -o '`Test[A-Za-z0-9]*`' test/faults/README.md | tr -d '`'))
FAULT_DIRS  = $(addprefix ./,$(sort $(shell sed -n 's/^|[^|]*| `\([a-z/]*\)` `Test.*/\1/p' test/faults/README.md)))
faults: envoy ## Break what is around controllers and proxies: every test of test/faults/README.md
	GATEHOUSE_SLOW=1 GATEHOUSE_BIN=$(CURDIR)/$(BIN) GOGC=400 $(GO) test -vet=off -count=1 -timeout 30m -p 2 $(TESTFLAGS) \
		-run '^(TestTable|$(subst $(SPACE),|,$(FAULT_TESTS)))$$' $(FAULT_DIRS)

generate: build ## Rewrite generated files: kinds, schemas, the command reference, the manifests
	$(GO) generate ./...
	$(BIN) reference docs/reference/commands.md
	cp config/crd/*.yaml charts/gatehouse/files/crds/
	cat config/namespace.yaml config/crd/*.yaml >config/base.yaml
	$(HELM) template gatehouse charts/gatehouse --namespace gatehouse-system --set crds.install=false --no-hooks >config/install.yaml

clean: ## Remove what was built
	rm -rf bin
