# Postroom. `make` lists the targets.
#
# PKG narrows test to some packages, ARGS is added to go test:
#   make test PKG=./store/... ARGS='-run TestInbox -v'

# The packages whose tests take longest begin first, so that none runs alone at the end.
PKG  ?= ./store ./contract ./cmd/postroom ./handlers ./internal/web $(shell go list ./... | grep -v /internal/faults)
ARGS ?=
CORPUS ?= $(POSTROOM_CORPUS)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)

# A real S3 server for make clients and make proofs; internal/s3test names the same version.
VERSITYGW_VERSION := v1.8.0
VERSITYGW := bin/versitygw-$(VERSITYGW_VERSION)

# A real ACME server for make clients; internal/acmetest names the same version.
PEBBLE_VERSION := v2.10.1
PEBBLE := bin/pebble-$(PEBBLE_VERSION)

# The translated C of SQLite shares memory with our code only through its driver.
# Under the race detector it takes more time than all our code.
RACE := -race -gcflags=modernc.org/...=-race=false

# What the race detector runs: CONCURRENT in full, and in SEQUENTIAL, where most tests make
# one call after another, the files that start goroutines. It does not run tests that start
# the program, which is built without it, nor these packages, which start goroutines in few
# places: cmd/postroom and, in internal, acmecert, approval, backup, dnsrec, doctor, domains
# and linkscan.
CONCURRENT := ./smtp/... ./internal/httpserver ./internal/httpapi/... ./internal/mailauth ./internal/stream ./internal/webhook ./internal/work/...
SEQUENTIAL := ./store ./handlers ./internal/mcp
RACE_FILES = $(shell find $(CONCURRENT:/...=) -name '*_test.go'; \
	grep -lE '\bgo func|\.Go\b|RunNodes|arriveAt|newPolicyRace' $(SEQUENTIAL:=/*_test.go))

# The names of the tests in some files, as part of a pattern for go test.
names = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).t .*/\1/p' $(1) | sort -u | paste -sd '|' -)

# The program that tests run, built once for all packages.
TEST_PROGRAM := POSTROOM_TEST_PROGRAM=$(CURDIR)/bin/test/postroom

GORELEASER_VERSION := v2.15.0
GORELEASER := bin/goreleaser-$(GORELEASER_VERSION)

HELM_VERSION := v3.19.2
HELM := bin/helm-$(HELM_VERSION)

# Many tests wait for disks, databases and timers, so more run at once than there are
# processors.
PARALLEL := -parallel 4

GOTEST := bin/withpg -- bin/gotest -p 2 -timeout 20m

# CI has no `make vet`: the tests make all of its checks, while others wait.
VET := $(if $(CI),-vet=all)

# make clients runs the tests in files with the build tag clients, and the tests of the
# browser again, whose pages axe-core audits then. They need the following.
#
CLIENT_FILES = $(shell grep -rl --include='*_test.go' --exclude-dir=node_modules '^//go:build clients' .)
BROWSER_FILES = $(shell grep -rl --include='*_test.go' --exclude-dir=node_modules '^func TestBrowser' .)

# Libraries of others that verify what webhooks send.
VERIFIERS := internal/webhook/testdata/verify

# SMTP clients of others that submit mail.
SUBMITTERS := cmd/postroom/testdata/submit

# SDKs of other products, for the APIs that we have of them.
VENDOR_SDKS := cmd/postroom/testdata/dropin

# A library of others that reads the answers to invitations.
CALENDARS := internal/mail/calendar/testdata/parsers

# What the examples use.
EXAMPLES := cmd/postroom/testdata/examples

# The official clients of MCP that its server is tried with.
MCP_CLIENTS := contract/testdata/mcp

# axe-core, which audits the pages of the dashboard.
AXE := internal/web/testdata/axe

.DEFAULT_GOAL := help
.PHONY: help vendor-ui site run build test race race-compile node vet check format lint bench score train fuzz faults proofs proofs-long soak rounds release-snapshot verify-release check-helm picture clients \
	bin/withpg bin/gotest bin/test/postroom check-generated

# generate and check-generated: the contract and what is made from it.
-include contract.mk

# All is built without C, so that tests and programs share what is compiled. Only the race
# detector needs C.
export CGO_ENABLED := 0

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build and start Postroom on SQLite
	@echo "Compiling Postroom: some minutes the first time, seconds later."
	go run ./cmd/postroom serve

build: ## build a static bin/postroom
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/postroom ./cmd/postroom

test: bin/withpg bin/gotest bin/test/postroom ## run the tests, on SQLite and PostgreSQL
	scripts/test-tools test
	@exec env $(TEST_PROGRAM) $(GOTEST) $(PARALLEL) $(VET) $(ARGS) -- $(PKG)

race: bin/withpg bin/gotest ## run the tests of what is concurrent with the race detector
	scripts/test-tools race
	@exec env CGO_ENABLED=1 $(GOTEST) -p 1 $(RACE) -vet=off -run '^($(call names,$(RACE_FILES)))$$' $(ARGS) -- $(SEQUENTIAL) $(CONCURRENT)

# CI compiles for make race while the tests of make proofs wait for disks and processes.
race-compile:
	CGO_ENABLED=1 nice go list -export -test -deps $(RACE) $(CONCURRENT) $(SEQUENTIAL) >/dev/null

clients: bin/withpg bin/gotest bin/test/postroom $(VERSITYGW) $(PEBBLE) $(VERIFIERS)/node_modules $(SUBMITTERS)/node_modules $(CALENDARS)/node_modules $(VENDOR_SDKS)/node_modules $(EXAMPLES)/node_modules $(TYPESCRIPT)/node_modules $(MCP_CLIENTS)/node_modules $(AXE)/node_modules ## run the tests with clients, servers and languages of others
	scripts/test-tools clients
	@exec env CI=true $(TEST_PROGRAM) $(GOTEST) $(PARALLEL) -tags clients $(VET) -run '^($(call names,$(CLIENT_FILES))|TestBrowser.*)$$' $(ARGS) -- $(sort $(dir $(CLIENT_FILES) $(BROWSER_FILES)))

check: format vet lint check-generated check-contract ## check format, vet, lint, generated code and the contract

format:
	@files=$$(gofmt -l $$(git ls-files '*.go' ':!gen')); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet:
	go vet -tags clients ./...

lint: $(GOLANGCI)
	$(GOLANGCI) run ./...

bench: ## measure speed (bench/README.md says what and how)
	./bench/run.sh

train: ## set the weights of codes and links from labelled mail: make train [TRAIN=folder] [ARGS=-v]
	@go run ./tools/train $(ARGS) $(TRAIN)

score: ## count how much mail is read right: make score CORPUS=folder [ARGS=-v]
	@test -n "$(CORPUS)" || { echo "set CORPUS to a folder of labelled messages"; exit 2; }
	@go run ./tools/score $(ARGS) $(CORPUS)

fuzz: ## fuzz every target for FUZZTIME (30s) each
	scripts/fuzz $(PKG)

faults: bin/withpg $(VERSITYGW) ## kill, fill and cut off the service, and see that no mail is lost
	exec env POSTROOM_TEST_ENGINES=all bin/withpg -fsync -- go test -tags faults -count=1 -parallel 1 -v -timeout 45m $(ARGS) ./internal/faults/...

proofs: bin/withpg bin/gotest bin/test/postroom $(VERSITYGW) ## prove that nothing is lost in kills, power cuts, failed syncs and outages
	exec env $(TEST_PROGRAM) bin/withpg -fsync -- bin/gotest $(VET) -count=1 -timeout 15m $(ARGS) -- ./internal/faults

proofs-long: faults ## the same in the long forms, alone on the machine
	exec env POSTROOM_TEST_FLIPS=10000 bin/withpg -- go test -count=1 -v -timeout 90m -run 'Verify|Export|Damage' ./internal/backup

SOAK ?= 20m
soak: bin/withpg ## run three nodes under load and faults for SOAK (20m), and see that no mail is stuck
	exec env POSTROOM_TEST_SOAK=$(SOAK) bin/withpg -fsync -- go test -tags faults -count=1 -v -timeout 0 -run TestSoak ./internal/faults

rounds: bin/withpg bin/test/postroom ## repeat what races, and what is hostile, by the thousand
	exec env $(TEST_PROGRAM) bin/withpg -- go test -tags faults -count=1 -p 1 -timeout 90m $(ARGS) ./handlers ./store ./smtp/... ./internal/webhook ./internal/web ./contract

site: ## write the documentation as a static site into dist/site
	go run ./tools/site dist/site

picture: bin/test/postroom ## make the moving picture of the README anew, with Chromium
	go run ./tools/picture bin/test/postroom docs/images/postroom.gif

vendor-ui: ## bring Swagger UI, which /docs shows, into the repository anew
	scripts/vendor-ui

release-snapshot: $(GORELEASER) ## build all release files that need no registry into dist/
	$(GORELEASER) release --snapshot --clean --parallelism 2

check-helm: $(HELM) ## lint the Helm chart, and render it with and without PostgreSQL
	scripts/check-helm $(HELM)

verify-release: $(GORELEASER) ## build the release in two folders and compare every file
	scripts/verify-release $(GORELEASER)

# A program and not `go run`, which would not hand on a signal to end; for the
# same reason it is exec'd above, in place of the shell.
bin/withpg:
	@go build -buildvcs=false -o $@ ./internal/testpg/cmd/withpg

bin/gotest:
	@go build -buildvcs=false -o $@ ./tools/gotest

bin/test/postroom:
	@go build -buildvcs=false -o $@ ./cmd/postroom

# Built once, from source: some two minutes on two cores.
$(GOLANGCI):
	GOBIN=$(CURDIR)/bin/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/tmp/golangci-lint $@
	rmdir bin/tmp

# As above, some five minutes.
$(GORELEASER):
	GOBIN=$(CURDIR)/bin/release go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	mv bin/release/goreleaser $@
	rmdir bin/release

# As above.
$(VERSITYGW):
	GOBIN=$(CURDIR)/bin/s3 go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
	mv bin/s3/versitygw $@
	rmdir bin/s3

# As above, one minute.
$(HELM):
	GOBIN=$(CURDIR)/bin/helm.tmp go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv bin/helm.tmp/helm $@
	rmdir bin/helm.tmp

# As above.
$(PEBBLE):
	GOBIN=$(CURDIR)/bin/acme go install github.com/letsencrypt/pebble/v2/cmd/pebble@$(PEBBLE_VERSION)
	mv bin/acme/pebble $@
	rmdir bin/acme

node:
	@scripts/test-tools node

# npm puts the folder there first and fills it then, so its time says when it
# was whole.
%/node_modules: %/package-lock.json | node
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund
	@touch $@
