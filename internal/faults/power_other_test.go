//go:build !linux

package faults_test

// powerVariable is of the tests that cut the power, which need Linux.
const powerVariable = "FAULTS_POWER_DISK"

func servePower(string) int { return 1 }
