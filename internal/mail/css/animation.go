package css

import (
	"math"
	"slices"
	"strings"
)

// keyframes is the name of the at-rule with the frames of an animation.
const keyframes = "keyframes"

// slowestAnimation is how long an animation may take to count, in seconds. The text is before
// that as if there were none.
const slowestAnimation = 10

// animation is what an at-rule with frames says.
type animation struct {
	last []declaredStyle // the last frame
	// unclear means that browsers may read another last frame.
	unclear bool
}

func isAnimation(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "-webkit-"), "animation")
}

// only returns the only token apart from spaces, or a Bad one.
func only(tokens []Token) Token {
	found := Token{Kind: Bad}
	for _, t := range tokens {
		if t.Kind == Space {
			continue
		}
		if found.Kind != Bad {
			return Token{Kind: Bad}
		}
		if found = t; t.Kind == Bad {
			return t
		}
	}
	return found
}

// nameOf returns the name in the prelude of an at-rule with frames, or an empty string.
func nameOf(prelude []Token) string {
	t := only(prelude)
	if t.Kind == String || t.Kind == Ident && !OneOf([]Token{t}, "none", "default", "initial", "inherit", "unset", "revert", "revert-layer") {
		return t.Text
	}
	return ""
}

// beginFrames begins the frames of an animation, which replace earlier ones of the same name. It
// returns false if browsers do not read them.
func (x *ruleIndex) beginFrames(at string, prelude []Token, depth int) bool {
	name := nameOf(prelude)
	if name == "" {
		return false
	}
	key := at + " " + name
	_, again := x.frames[key]
	x.frame = &animation{unclear: again && depth > 0} // a layer may be weaker
	x.frames[key] = x.frame
	return true
}

// addFrame adds the styles of a frame to the animation that is being read.
func (x *ruleIndex) addFrame(selector []Token, set []declaredStyle) {
	last := false
	for part := range splitTokens(selector, ",") {
		t := only(part)
		n, unit := Measured(t)
		switch {
		case t.Kind == Number && unit == "%":
			last = last || n == 100
		case t.Kind == Ident && OneOf([]Token{t}, "from", "to"):
			last = last || OneOf([]Token{t}, "to")
		default: // browsers skip the frame, or read more than is known here
			x.frame.unclear = true
			return
		}
	}
	if slices.ContainsFunc(set, func(d declaredStyle) bool { return isAnimation(d.name) }) {
		x.frame.unclear = true
	}
	if last {
		x.frame.last = append(x.frame.last, set...)
	}
}

// animate sets a property of the animation of an element, with the value v after variables.
func (l *look) animate(d declaredStyle, v []Token) {
	if strings.TrimPrefix(d.name, "-webkit-") == "animation" {
		l.animation, l.pieced = nil, false
	} else {
		l.pieced = true
	}
	if len(l.animation)+len(v) > maxResolved {
		l.pieced = true
		return
	}
	if slices.ContainsFunc(d.value, func(t Token) bool { return t.Kind == Function && t.Text == "var" }) {
		l.pieced = true
	}
	l.animation = append(slices.Clip(l.animation), v...)
}

// animationWords are the words in an animation that counts, with the property that they set.
var animationWords = map[string]string{
	"forwards": "fill", "both": "fill", "normal": "direction", "running": "state",
	"ease": "timing", "ease-in": "timing", "ease-out": "timing", "ease-in-out": "timing", "linear": "timing",
}

// lastFrame returns how the animation of an element leaves it. An animation that is slow, paused,
// endless or runs backwards does not count. plain means that browsers certainly run the
// animation and keep its last frame; if it is false, they may.
func (x *ruleIndex) lastFrame(l *look) (frame []declaredStyle, plain bool) {
	plain = !l.pieced
	single, stays, stops := plain, false, false
	seconds, count := 0.0, 1.0
	used, within := map[string]bool{}, Brackets{}
	for _, t := range l.animation {
		if within.Take(t); len(within) > 0 {
			plain = false
			continue
		}
		n, unit := Measured(t)
		sets := ""
		switch {
		case t.Kind == Space:
			continue
		case t.Is(","):
			single = false
		case t.Kind == Number && unit == "" && n == 0: // it never runs
			stops = true
		case t.Kind == Number && unit == "" && n == math.Trunc(n) && n > 0:
			sets, count = "count", n
		case t.Kind == Number && (unit == "s" || unit == "ms") && n >= 0:
			if unit == "ms" {
				n /= 1000
			}
			seconds += n
			if sets = "duration"; used[sets] {
				sets = "delay"
			}
		case t.Kind == Ident || t.Kind == String:
			word := []Token{t}
			stays = stays || OneOf(word, "forwards", "both")
			stops = stops || OneOf(word, "none", "paused", "reverse", "alternate", "alternate-reverse", "infinite")
			if t.Kind == Ident {
				sets = animationWords[strings.ToLower(t.Text)]
			}
			a := x.frames[keyframes+" "+t.Text]
			if a == nil {
				a = x.frames["-webkit-"+keyframes+" "+t.Text]
			}
			if a != nil {
				if x.work -= costOf(a.last) + costOf(frame); x.work < 0 {
					return nil, false
				}
				frame = append(slices.Clip(frame), a.last...)
				if sets == "" && t.Kind == Ident && !a.unclear {
					sets = "name"
				}
			}
		}
		plain = plain && sets != "" && !used[sets]
		used[sets] = true
	}
	stops = stops || seconds*count > slowestAnimation
	if !stays || single && stops {
		return nil, false
	}
	return frame, plain && used["name"]
}
