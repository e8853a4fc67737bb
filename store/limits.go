package store

// bounds are how much one page of a list or of a search may cost. A page that
// comes to one of them is cut, and the next one goes on from there.
type bounds struct {
	// listScan bounds how many messages a page of a list looks at, whatever its
	// filters let pass: some 20 ms.
	listScan int
	// searchLook bounds how many messages that the index names a page of a search
	// looks at, for the filters that the index does not know.
	searchLook int
	// searchRead and searchReadBytes bound the mail that it reads: what the index
	// does not hold yet, and what may have a phrase.
	searchRead, searchReadBytes int
	// searchBuckets bounds how many buckets of the index it goes through.
	searchBuckets int
	// bucketSize is about how many messages of an account share a bucket of the
	// full-text index. A search goes through the buckets from the newest on: a
	// larger one makes a search for a common word slower on a database that has
	// to find all of a bucket to know the newest, a smaller one that for a rare
	// word.
	bucketSize int64
}

var usualBounds = bounds{
	listScan: 20_000, searchLook: 10_000, searchRead: 1000, searchReadBytes: 8 << 20, searchBuckets: 256, bucketSize: 4096,
}
