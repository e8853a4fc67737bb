package handlers_test

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if check, err := checker(); err == nil && testing.Verbose() {
		fmt.Printf("handlers: %d exchanges held against the contract\n", check.Exchanges())
	}
	os.Exit(code)
}
