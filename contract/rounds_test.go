//go:build !faults

package contract_test

// allMutants sends each mutant to both databases.
const allMutants = false
