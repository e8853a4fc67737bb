package css

import (
	"slices"
	"strings"
)

// keyframes is the name of the at-rule with the frames of an animation.
const keyframes = "keyframes"

// slowestAnimation is how long an animation may take to count, in seconds. The text is before
// that as if there were none.
const slowestAnimation = 10

func isAnimation(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "-webkit-"), "animation")
}

// nameIn returns the first name or text in a prelude.
func nameIn(tokens []Token) string {
	i := slices.IndexFunc(tokens, func(t Token) bool { return t.Kind == Ident || t.Kind == String })
	if i < 0 {
		return ""
	}
	return tokens[i].Text
}

// animate adds a property of the animation of an element.
func (l *look) animate(name string, v []Token) {
	if strings.HasSuffix(name, "animation") {
		l.animation = nil
	}
	if len(l.animation)+len(v) <= maxResolved {
		l.animation = append(slices.Clip(l.animation), v...)
	}
}

// lastFrame returns how an animation leaves an element. forever means that the animation never
// ends, so that the element also looks as it does without. An animation that is slow, paused or
// runs backwards does not count.
func (x *ruleIndex) lastFrame(animation []Token) (frame []declaredStyle, forever bool) {
	stays, within := false, Brackets{}
	for _, t := range animation {
		if within.Take(t); len(within) > 0 {
			continue // the numbers of steps() or cubic-bezier()
		}
		switch n, unit := Measured(t); {
		case t.Kind == Number && unit == "s" && n > slowestAnimation, t.Kind == Number && unit == "ms" && n > slowestAnimation*1000:
			return nil, false
		case t.Kind == Number && unit == "" && n == 0 && len(t.Text) == 1: // it never runs
			return nil, false
		case t.Kind != Ident && t.Kind != String:
		case OneOf([]Token{t}, "none", "paused", "reverse", "alternate", "alternate-reverse"):
			return nil, false
		case OneOf([]Token{t}, "forwards", "both"):
			stays = true
		case OneOf([]Token{t}, "infinite"):
			forever = true
		default:
			if set, known := x.frames[t.Text]; known {
				frame = set
			}
		}
	}
	if x.work -= costOf(frame); x.work < 0 || !stays && !forever {
		return nil, false
	}
	return frame, forever
}
