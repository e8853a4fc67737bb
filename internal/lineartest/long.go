//go:build faults

package lineartest

// long reports whether all units of a reader are tried, or only the first ones.
const long = true
