# The contract and what is made from it.

.PHONY: generate check-generated

generate: ## make gen/ from openapi.yaml
	go run ./tools/specgen
	go tool ogen --loglevel error --clean --target gen --package gen --config .ogen.yml tmp/openapi.ogen.yaml
	go run ./tools/specgen -stream gen/oas_response_encoders_gen.go
	go run ./tools/specgen -lenient gen/oas_response_decoders_gen.go

check-generated: generate ## fail unless gen/ is what openapi.yaml makes
	git diff --exit-code -- gen
	@test -z "$$(git ls-files --others --exclude-standard -- gen)"
