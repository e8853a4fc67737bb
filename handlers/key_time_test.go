//go:build faults

package handlers_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

const (
	timedRuns  = 10
	timedCalls = 20_000 // per group and run
)

// sharedLengths are the lengths of the prefix that wrong keys share with a real
// key. Each is a group whose times are compared.
var sharedLengths = []int{0, 10, 20, 30, 40}

// H1: the time to refuse a wrong key does not reveal how much of it is right.
// One of ten runs may differ by chance: two do so in 4 of 1,000 cases.
func TestTimeDoesNotTellAKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			st := storetest.Open(t, e)
			account := storetest.Account(t, st).Seq
			for i := range 1000 {
				storetest.Key(t, st, account, fmt.Sprintf("%032x", i))
			}
			name := fmt.Sprintf("%032x", 500)
			h := newHandler(t, st)
			leaks := 0
			for run := range timedRuns {
				times := timesOf(t, rng, h, storetest.Secret(name))
				p := sameDistribution(times)
				t.Logf("run %d: p = %.3f, medians %v", run+1, p, medians(times))
				if p <= 0.01 {
					leaks++
				}
			}
			if leaks > 1 {
				t.Errorf("in %d of %d runs the time depends on the correct prefix of a key", leaks, timedRuns)
			}
		})
	}
}

// timesOf measures wrong keys by group. The order is random, so that other work
// of the machine affects all groups alike.
func timesOf(t *testing.T, rng *rand.Rand, h http.Handler, secret string) [][]float64 {
	t.Helper()
	order := make([]int, 0, len(sharedLengths)*timedCalls)
	for g := range sharedLengths {
		order = append(order, slices.Repeat([]int{g}, timedCalls)...)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	times := make([][]float64, len(sharedLengths))
	for _, g := range order {
		r := addressed(otherAddress, wrongKey(rng, secret, sharedLengths[g]))
		begin := time.Now()
		got := status(h, r)
		times[g] = append(times[g], float64(time.Since(begin)))
		if got != http.StatusUnauthorized {
			t.Fatalf("status of a wrong key: %d", got)
		}
	}
	return times
}

// wrongKey returns a key of the same length that shares a prefix with secret.
func wrongKey(rng *rand.Rand, secret string, shared int) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	key := []byte(secret)
	for i := shared; i < len(key); i++ {
		for key[i] == secret[i] {
			key[i] = letters[rng.IntN(len(letters))]
		}
	}
	return string(key)
}

func medians(groups [][]float64) []time.Duration {
	all := make([]time.Duration, len(groups))
	for i, g := range groups {
		g = slices.Sorted(slices.Values(g))
		all[i] = time.Duration(g[len(g)/2])
	}
	return all
}

// sameDistribution returns the p-value of the Kruskal-Wallis test: the
// probability that groups of the same distribution differ at least this much.
// For five groups the statistic is approximately chi-squared with four degrees
// of freedom.
func sameDistribution(groups [][]float64) float64 {
	type value struct {
		v     float64
		group int
	}
	var all []value
	for g, values := range groups {
		for _, v := range values {
			all = append(all, value{v, g})
		}
	}
	slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.v, b.v) })
	n, ties := float64(len(all)), 0.0
	ranks := make([]float64, len(groups))
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		for _, v := range all[i:j] {
			ranks[v.group] += float64(i+j+1) / 2
		}
		same := float64(j - i)
		ties += same*same*same - same
		i = j
	}
	var sum float64
	for g, values := range groups {
		sum += ranks[g] * ranks[g] / float64(len(values))
	}
	h := (12/(n*(n+1))*sum - 3*(n+1)) / (1 - ties/(n*n*n-n))
	return math.Exp(-h/2) * (1 + h/2)
}

// The test detects a group that is one percent slower.
func TestSameDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	groups := func(last float64) [][]float64 {
		all := make([][]float64, len(sharedLengths))
		for g := range all {
			for range timedCalls {
				v := 50_000 * math.Exp(rng.NormFloat64()/5)
				if g == len(all)-1 {
					v *= last
				}
				all[g] = append(all[g], math.Round(v/40)*40) // clock resolution
			}
		}
		return all
	}
	if p := sameDistribution(groups(1)); p < 0.01 {
		t.Errorf("equal groups: p = %v", p)
	}
	if p := sameDistribution(groups(1.01)); p > 0.01 {
		t.Errorf("a slower group: p = %v", p)
	}
}
