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
	rate   = 0.3  // of the steps
	decay  = 1e-3 // pulls the weights of a candidate's signs to zero at each step
	soft   = 1    // makes the first steps smaller
	seed   = 1
)

// model holds the weights of one kind of choice.
type model struct {
	weights, none       []float64 // of the signs of a candidate, and of "none"
	squares, noneSquare []float64 // sums of the squares of the steps, as AdaGrad needs them
}

func newModel(signs, noneSigns int) *model {
	return &model{make([]float64, signs), make([]float64, noneSigns), make([]float64, signs), make([]float64, noneSigns)}
}

// fit sets the weights so that the right candidates of the tasks become likely:
// a logistic regression over the candidates of each message. It goes through the
// tasks in an order that only depends on seed.
func fit(tasks []*task, signs, noneSigns int) *model {
	m := newModel(signs, noneSigns)
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it must be the same each time
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
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
		step(m.weights, m.squares, t.candidates[best[v]-1], t.weight*(target-math.Exp(s-top)/sum))
	}
	target := truth(wanted == 0)
	step(m.none, m.noneSquare, t.none, t.weight*(target-math.Exp(none-top)/sum))
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
func step(weights, squares []float64, numbers []uint16, gradient float64) {
	for _, n := range numbers {
		squares[n] += float64(gradient * gradient)
		weights[n] += float64(rate*gradient) / (soft + math.Sqrt(squares[n]))
		weights[n] -= float64(decay * weights[n])
	}
}
