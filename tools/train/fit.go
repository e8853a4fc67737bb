package main

import (
	"math"
	"math/rand/v2"
)

// A task is one choice: among the candidates of a message, or none of them.
type task struct {
	none       []uint16   // the signs of "none"
	candidates [][]uint16 // the signs of each place
	value      []int      // the candidate that each place belongs to
	right      []bool     // by candidate
	ok         []bool     // by candidate: it is not wrong to choose it, and not right either
	weight     float64
}

// Settings of the training, chosen by cross-validation.
const (
	rounds = 80
	rate   = 0.3 // of the steps
	soft   = 1   // makes the first steps smaller
	seed   = 1
)

// A penalty pulls the weights of a candidate's signs to zero at each step.
type penalty struct {
	decay float64 // of a common sign
	rare  float64 // a sign of this many candidates decays twice as fast
}

// The penalties of codes and links, chosen by cross-validation, too.
var (
	ofCodes = penalty{decay: 5e-4, rare: 60}
	ofLinks = penalty{decay: 1e-3}
)

// model holds the weights of one kind of choice.
type model struct {
	weights, none       []float64 // of the signs of a candidate, and of "none"
	squares, noneSquare []float64 // sums of the squares of the steps, as AdaGrad needs them
	decay, noneDecay    []float64 // of each weight at each step
}

func newModel(signs, noneSigns int) *model {
	list := func(n int) []float64 { return make([]float64, n) }
	return &model{list(signs), list(noneSigns), list(signs), list(noneSigns), list(signs), list(noneSigns)}
}

// fit sets the weights so that the right candidates of the tasks become likely:
// a logistic regression over the candidates of each message. It goes through the
// tasks in an order that only depends on seed.
func fit(tasks []*task, signs, noneSigns int, p penalty) *model {
	m := newModel(signs, noneSigns)
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it must be the same each time
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	m.setDecay(tasks, p)
	mean := newModel(signs, noneSigns)
	for round := range rounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			m.learn(tasks[i])
		}
		if round >= rounds/2 {
			add(mean.weights, m.weights)
			add(mean.none, m.none)
		}
	}
	return mean
}

// setDecay makes the weights of rare signs decay faster: a few messages say little.
func (m *model) setDecay(tasks []*task, p penalty) {
	for _, t := range tasks {
		for _, numbers := range t.candidates {
			for _, n := range numbers {
				m.decay[n]++
			}
		}
		for _, n := range t.none {
			m.noneDecay[n]++
		}
	}
	for _, list := range [][]float64{m.decay, m.noneDecay} {
		for i, count := range list {
			list[i] = p.decay * (1 + p.rare/(1+count))
		}
	}
}

// add adds a share of the weights of one round to their mean.
func add(mean, weights []float64) {
	for i, w := range weights {
		mean[i] += w / (rounds - rounds/2)
	}
}

// learn takes one step for a task.
func (m *model) learn(t *task) {
	best := make([]int, len(t.right)) // the best place of each candidate, plus one
	scores := make([]float64, len(t.right))
	for place, numbers := range t.candidates {
		v := t.value[place]
		if s := total(m.weights, numbers); best[v] == 0 || s > scores[v] {
			best[v], scores[v] = place+1, s
		}
	}
	none := total(m.none, t.none)
	top := none
	wanted := 0.0
	for v, s := range scores {
		if best[v] != 0 && !t.ok[v] {
			top = max(top, s)
			wanted += truth(t.right[v])
		}
	}
	sum := math.Exp(none - top)
	for v, s := range scores {
		if best[v] != 0 && !t.ok[v] {
			sum += math.Exp(s - top)
		}
	}
	for v, s := range scores {
		if best[v] == 0 || t.ok[v] {
			continue
		}
		target := 0.0
		if t.right[v] {
			target = 1 / wanted
		}
		step(m.weights, m.squares, m.decay, t.candidates[best[v]-1], t.weight*(target-math.Exp(s-top)/sum))
	}
	target := truth(wanted == 0)
	step(m.none, m.noneSquare, m.noneDecay, t.none, t.weight*(target-math.Exp(none-top)/sum))
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func total(weights []float64, numbers []uint16) (sum float64) {
	for _, n := range numbers {
		sum += weights[n]
	}
	return sum
}

// step moves the weights of the signs of a candidate. The explicit conversions
// keep the compiler from fusing operations, so that all machines compute the
// same.
func step(weights, squares, decay []float64, numbers []uint16, gradient float64) {
	for _, n := range numbers {
		squares[n] += float64(gradient * gradient)
		weights[n] += float64(rate*gradient) / (soft + math.Sqrt(squares[n]))
		weights[n] -= float64(decay[n] * weights[n])
	}
}
