//go:build faults

package contract_test

const allMutants = true
