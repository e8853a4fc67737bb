//go:build !faults

package faults_test

// full says whether the tests run in their long forms.
const full = false
