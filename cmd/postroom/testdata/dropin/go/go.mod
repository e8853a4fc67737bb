module github.com/postroom/postroom/cmd/postroom/testdata/dropin/go

go 1.26

require github.com/resend/resend-go/v3 v3.1.1
