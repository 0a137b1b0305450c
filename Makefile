# Every target sets up what it needs: a fresh clone needs nothing before it.
.DEFAULT_GOAL := help
SHELL := /bin/bash

BIN := node_modules/.bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
SOURCES := $(shell find src -name '*.ts')
PROTOS := $(shell find proto proto-internal -name '*.proto') buf.gen.yaml buf.gen.internal.yaml buf.yaml
MODULES := node_modules/.package-lock.json
BUILT := dist/.tsbuildinfo

.PHONY: help demo test torture check build gen certs endurance bench clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: build ## run the main job from end to end, narrated, in under a minute
	node scripts/demo.mjs

test: build ## pass all tests
	NODE_OPTIONS=--experimental-vm-modules $(BIN)/jest $(JEST_ARGS)

torture: build ## work for 10 minutes while everything is killed, then check every byte
	node test/torture/run.mjs

check: build ## lint, format, types, proto lint and compatibility, drift of generated code
	$(BIN)/biome ci .
	$(BIN)/tsc -p tsconfig.json
	$(BIN)/buf lint proto
	$(BIN)/buf lint proto-internal
	$(BIN)/buf format -d --exit-code proto
	$(BIN)/buf format -d --exit-code proto-internal
	@if [ -f proto/released.binpb ]; then $(BIN)/buf breaking proto --against proto/released.binpb; \
	else echo 'buf breaking: skipped, no release has been made yet (proto/released.binpb is absent)'; fi
	bash scripts/check-generated.sh

build: $(BUILT) ## install dependencies and compile to dist/

gen: $(MODULES) ## generate src/gen from proto/ and proto-internal/
	$(BIN)/buf generate
	$(BIN)/buf generate --template buf.gen.internal.yaml

certs: build ## make a development certificate authority and certificates in certs-dev/out
	node certs-dev/make.mjs

endurance: build ## run the long versions of tests: 20,000 terminals, 1 GB past a stopped watcher
	GRANTTY_CHURN=5000,20000 GRANTTY_FLOOD_BYTES=1000000000 NODE_OPTIONS=--experimental-vm-modules \
	$(BIN)/jest --runInBand test/e2e/churn test/e2e/slowWatcher

bench: build ## measure against references on this machine
	node bench/main.mjs

clean: ## remove what was built and installed
	rm -rf dist node_modules coverage certs-dev/out

$(MODULES): package.json package-lock.json
	npm ci --no-audit --no-fund
	@touch $@

$(BUILT): $(MODULES) $(SOURCES) tsconfig.json tsconfig.build.json
	$(BIN)/tsc -p tsconfig.build.json
	@chmod +x dist/cli/main.js
	@touch $@
