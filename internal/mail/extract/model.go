package extract

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Model holds the weights of the signs. Weights are integers, so that the same
// message has the same score on every machine.
type Model struct {
	code, noCode, link, noLink []int32
}

// one is a weight of 1.0: it makes a candidate e times as likely.
const one = 100

// Kinds of the weights, as in the file.
const (
	CodeSigns   = "code"
	NoCodeSigns = "no code"
	LinkSigns   = "link"
	NoLinkSigns = "no link"
)

//go:embed weights.txt
var weightsFile string

// Trained returns the model of weights.txt.
func Trained() *Model { return trained() }

var trained = sync.OnceValue(func() *Model {
	m, err := ParseModel(weightsFile)
	if err != nil {
		panic(err) // the program was built with a damaged file
	}
	return m
})

var signNames = map[string][]string{
	CodeSigns: codeSigns.names, NoCodeSigns: noCodeSigns.names, LinkSigns: linkSigns.names, NoLinkSigns: noLinkSigns.names,
}

// SignNames returns the names of the signs of a kind, by number.
func SignNames(kind string) []string { return signNames[kind] }

// NewModel returns a model with the given weights, by kind and number.
func NewModel(weights map[string][]float64) *Model {
	m := &Model{}
	for kind, list := range m.lists() {
		*list = make([]int32, len(SignNames(kind)))
		for i, w := range weights[kind] {
			(*list)[i] = int32(math.Round(w * one))
		}
	}
	return m
}

func (m *Model) lists() map[string]*[]int32 {
	return map[string]*[]int32{CodeSigns: &m.code, NoCodeSigns: &m.noCode, LinkSigns: &m.link, NoLinkSigns: &m.noLink}
}

// String returns the model as text: the sections [code], [no code], [link] and
// [no link], and in each a line for every sign that weighs something.
func (m *Model) String() string {
	var b strings.Builder
	for _, kind := range []string{CodeSigns, NoCodeSigns, LinkSigns, NoLinkSigns} {
		fmt.Fprintf(&b, "[%s]\n", kind)
		names := SignNames(kind)
		for i, w := range *m.lists()[kind] {
			if w != 0 {
				fmt.Fprintf(&b, "%+d %s\n", w, names[i])
			}
		}
	}
	return b.String()
}

// ParseModel reads what String returns.
func ParseModel(text string) (*Model, error) {
	m := NewModel(nil)
	var list []int32
	at := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if kind, ok := strings.CutPrefix(line, "["); ok {
			kind = strings.TrimSuffix(kind, "]")
			target := m.lists()[kind]
			if target == nil {
				return nil, fmt.Errorf("weights: unknown section %q", kind)
			}
			list = *target
			clear(at)
			for i, name := range SignNames(kind) {
				at[name] = i
			}
			continue
		}
		weight, name, _ := strings.Cut(line, " ")
		i, known := at[name]
		w, err := strconv.ParseInt(weight, 10, 32)
		if err != nil || !known {
			return nil, fmt.Errorf("weights: unknown sign or bad weight in %q", line)
		}
		list[i] = int32(w)
	}
	return m, nil
}

// sum returns the score of the signs with the given numbers.
func sum(weights []int32, numbers []uint16) (score int) {
	for _, n := range numbers {
		score += int(weights[n])
	}
	return score
}
