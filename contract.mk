# The contract and what is made from it.

# Generators and linters of others. The clients that the first makes run in make
# clients.
TYPESCRIPT := contract/testdata/typescript
LINTERS := contract/testdata/lint
GENERATORS := contract/testdata/generators

OASDIFF_VERSION := v1.30.0
OASDIFF := bin/oasdiff-$(OASDIFF_VERSION)
OAPI_CODEGEN_VERSION := v2.8.2
OAPI_CODEGEN := bin/oapi-codegen-$(OAPI_CODEGEN_VERSION)

URL ?= http://127.0.0.1:8080

.PHONY: generate check-generated check-contract sdk sdks sdk-flows

generate: ## make gen/ from openapi.yaml
	go run ./tools/specgen
	go tool ogen --loglevel error --clean --target gen --package gen --config .ogen.yml tmp/openapi.ogen.yaml
	@# The error of a request says by itself what failed.
	sed 's/errors.Wrap(err, "do request")/err/' gen/oas_client_gen.go >tmp/client.go && mv tmp/client.go gen/oas_client_gen.go
	@if [ -d $(TYPESCRIPT)/node_modules ]; then $(MAKE) --no-print-directory sdks; fi

check-generated: generate ## fail unless the generated files match openapi.yaml
	git diff --exit-code -- gen sdk
	@test -z "$$(git ls-files --others --exclude-standard -- gen)"

check-contract: $(LINTERS)/node_modules $(GENERATORS)/node_modules $(OASDIFF) $(OAPI_CODEGEN) ## hold the contract against linters, generators and the last release
	scripts/check-contract $(OASDIFF) $(OAPI_CODEGEN)

sdks: $(TYPESCRIPT)/node_modules ## make the generated files of sdk/ from the contract
	[ -e sdk/typescript/node_modules ] || ln -s ../../$(TYPESCRIPT)/node_modules sdk/typescript/node_modules
	cd sdk/typescript && node generate.mjs
	python3 sdk/python/generate.py

sdk-flows: $(TYPESCRIPT)/node_modules ## run 500 sign-ups at once with the packages of sdk/ and the Go client
	POSTROOM_TEST_FLOWS=500 go test -tags clients -count=1 -timeout 10m -run 'SDK$$' ./contract

sdk: $(TYPESCRIPT)/node_modules ## make TypeScript clients of the server at URL into bin/sdk
	scripts/sdk-typescript $(URL) bin/sdk

# Each into a folder of its own, as what is made at the same time has the same name.
$(OASDIFF):
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/oasdiff.tmp go install github.com/oasdiff/oasdiff@$(OASDIFF_VERSION)
	mv bin/oasdiff.tmp/oasdiff $@
	rmdir bin/oasdiff.tmp

$(OAPI_CODEGEN):
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/codegen.tmp go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$(OAPI_CODEGEN_VERSION)
	mv bin/codegen.tmp/oapi-codegen $@
	rmdir bin/codegen.tmp
