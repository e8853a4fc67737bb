package faults_test

import (
	"context"

	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seedVar sets the seed, to repeat a run. Every test logs its seed.
const seedVar = "POSTROOM_TEST_SEED"

// randomness returns the random numbers of one test.
func randomness(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%s=%d", seedVar, seed)
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name())) // a hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// upTo returns a time from 0 to most.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// at returns a percentile of sorted times.
func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
