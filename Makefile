# Everything that is done to this repository, one target each. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# E2E tests share two cores with a whole control plane: one package at a time.
TEST_TIMEOUT ?= 60m
FUZZ_TIME ?= 60s

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/standup
	go build -trimpath -o bin/standup ./cmd/standup

.PHONY: test
test: ## everything: unit, golden, end-to-end on the real control plane (builds it if need be)
	go run ./test/cluster/cmd/cluster -build-only
	go test -p 1 -timeout $(TEST_TIMEOUT) ./...

.PHONY: test-short
test-short: ## everything that needs no control plane
	go test -short ./...

.PHONY: e2e
e2e: ## only the end-to-end tests
	go test -p 1 -count 1 -timeout $(TEST_TIMEOUT) ./test/...

.PHONY: race
race: ## the short tests under the race detector
	go test -short -race ./...

.PHONY: bench
bench: ## every benchmark, as ratios against the alternative or the floor
	go test -short -run '^$$' -bench . -timeout $(TEST_TIMEOUT) ./pkg/...
	STANDUP_VERDICTS=300 go test -count 1 -v -run TestE2EVerdicts -timeout $(TEST_TIMEOUT) ./test/e2e

.PHONY: bench-coldstart
bench-coldstart: ## cold starts on the real control plane: Flux alone, a script, standup
	go run ./test/coldstart

.PHONY: demo
demo: ## watch a wedged cluster being freed, on a real control plane
	go run ./test/demo

.PHONY: cluster
cluster: ## keep a control plane running and print its KUBECONFIG
	go run ./test/cluster/cmd/cluster -standins

.PHONY: lint
lint: ## golangci-lint, pinned in scripts/tools
	go tool -modfile=scripts/tools/go.mod golangci-lint run ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZ_TIME
	scripts/fuzz.sh $(FUZZ_TIME)

.PHONY: generate
generate: ## generated files and the README's flag tables
	go generate ./...

.PHONY: verify
verify: ## what a review would ask for: tidy, generated files, formatting, vet, lint
	scripts/verify.sh
