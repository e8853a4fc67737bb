package work

// Lease is a claim on a row of work: one node alone works on it until the lease ends.
type Lease struct {
	Row   int64 // the number of the row
	Fence int64 // rises with each claim of the row
}

// Busy is the work that a node does not claim now, nil for none.
type Busy struct {
	Keys     []any   // what the work is for: a domain, the number of an endpoint
	Accounts []int64 // whose work it is
}
