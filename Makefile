export GOTOOLCHAIN := auto

GO        ?= go
BIN       := bin/gatehouse
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TESTFLAGS ?=
# What `make run` serves, and further flags for it, such as RUN_FLAGS='--bind ::1'.
DIR       ?= examples/quickstart
RUN_FLAGS ?= --port-offset 8000

.DEFAULT_GOAL := help
.PHONY: help build envoy run test lint bench generate clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

build: ## Build bin/gatehouse
	$(GO) build -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BIN) ./cmd/gatehouse

envoy: build ## Fetch the official Envoy into your cache, unless there is one
	@$(BIN) envoy path >/dev/null 2>&1 || $(BIN) envoy install

# The backends come first: where one of their ports is taken, that is said and
# nothing runs. They end with what they run.
run: envoy ## Serve examples/quickstart at 127.0.0.1:8080, with two echo backends
	@exec $(BIN) echo --listen v1=127.0.0.1:3001 --listen v2=127.0.0.1:3002 -- \
		$(BIN) run $(DIR) $(RUN_FLAGS)

test: envoy ## Run all tests, with the real Envoy (TESTFLAGS='-run X -v' for more)
	GATEHOUSE_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 20m $(TESTFLAGS) ./...

lint: ## Check style and the import rules
	$(GO) tool -modfile=tools/go.mod golangci-lint run

bench: envoy ## Measure changes at 100 to 20,000 routes; writes bench/results/latest.json
	GATEHOUSE_BIN=$(CURDIR)/$(BIN) $(GO) run ./test/bench

generate: build ## Rewrite generated files: kinds, schemas and the command reference
	$(GO) generate ./...
	$(BIN) reference docs/reference/commands.md

clean: ## Remove what was built
	rm -rf bin
