package css

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// rgba is a colour with its opacity, each component from 0 to 1.
type rgba struct{ r, g, b, alpha float64 }

var (
	black    = rgba{0, 0, 0, 1}
	white    = rgba{1, 1, 1, 1}
	linkBlue = rgba{0, 0, 0.93, 1}
)

// over returns the colour of c on a background.
func (c rgba) over(ground rgba) rgba {
	mix := func(top, below float64) float64 { return top*c.alpha + below*(1-c.alpha) }
	return rgba{mix(c.r, ground.r), mix(c.g, ground.g), mix(c.b, ground.b), 1}
}

// contrast returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2).
func contrast(a, b rgba) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c rgba) float64 {
	part := func(v float64) float64 { return linear[int(v*255+0.5)] }
	return 0.2126*part(c.r) + 0.7152*part(c.g) + 0.0722*part(c.b)
}

// linear holds the light of each of the 256 values of a component of a colour.
var linear = func() (light [256]float64) {
	for i := range light {
		if v := float64(i) / 255; v <= 0.04045 {
			light[i] = v / 12.92
		} else {
			light[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return light
}()

// readColour parses the colour that begins at tokens[i], and returns its number of tokens.
// Programs also accept three or six hexadecimal digits without "#" as a colour.
func readColour(tokens []Token, i int) (c rgba, n int, ok bool) {
	t := tokens[i]
	switch t.Kind {
	case Hash:
		c, ok = hexColour(t.Text)
		return c, 1, ok
	case Ident:
		switch strings.ToLower(t.Text) {
		case "transparent":
			return rgba{}, 1, true
		case "canvas":
			return white, 1, true
		case "canvastext":
			return black, 1, true
		}
		if c, ok = hexColour(colourNames[strings.ToLower(t.Text)]); ok {
			return c, 1, true
		}
		c, ok = hexColour(t.Text)
		return c, 1, ok
	case Number:
		c, ok = hexColour(t.Text)
		return c, 1, ok
	case Function:
		return functionColour(tokens, i)
	}
	return c, 0, false
}

func hexColour(s string) (rgba, bool) {
	var digits [4]float64
	digits[3] = 1
	size := 2
	switch len(s) {
	case 3, 4:
		size = 1
	case 6, 8:
	default:
		return rgba{}, false
	}
	for i := 0; i < len(s)/size; i++ {
		n, err := strconv.ParseUint(s[i*size:(i+1)*size], 16, 8)
		if err != nil {
			return rgba{}, false
		}
		digits[i] = float64(n) / float64(int(1)<<(4*size)-1)
	}
	return rgba{digits[0], digits[1], digits[2], digits[3]}, true
}

// mixes reports whether a function returns one of several colours, or a mixture.
func mixes(function string) bool { return function == "light-dark" || function == "color-mix" }

// functionColour parses rgb(), rgba(), hsl() or hsla().
func functionColour(tokens []Token, i int) (c rgba, n int, ok bool) {
	name := tokens[i].Text
	if mixes(name) { // by its first colour, also of one in it
		for n = 1; i+n < len(tokens); n++ {
			if mixes(tokens[i+n].Text) {
				continue
			}
			if c, m, ok := readColour(tokens, i+n); ok && tokens[i+n].Kind != Number && tokens[i+n].Text != "in" {
				return c, n + m, true
			}
		}
		return c, n, false
	}
	if !slices.Contains([]string{"rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch", "color"}, name) {
		return c, 0, false
	}
	var parts []float64
	var units []string
	for n = 1; i+n < len(tokens); n++ {
		t := tokens[i+n]
		if t.Is(")") {
			break
		}
		switch t.Kind {
		case Number:
			v, unit := Measured(t)
			parts, units = append(parts, v), append(units, unit)
		case Function:
			return c, 0, false // a computed value
		}
	}
	n++
	if len(parts) < 3 {
		return c, n, false
	}
	alpha := 1.0
	if len(parts) > 3 {
		if alpha = parts[3]; units[3] == "%" {
			alpha /= 100
		}
	}
	grey := func(light float64) rgba { return rgba{clamp(light), clamp(light), clamp(light), clamp(alpha)} }
	switch name {
	case "color":
		return rgba{clamp(parts[0]), clamp(parts[1]), clamp(parts[2]), clamp(alpha)}, n, true
	case "hwb":
		return grey(parts[1] / 100), n, true
	case "lab", "lch":
		return grey(parts[0] / 100), n, true
	case "oklab", "oklch":
		if units[0] == "%" {
			parts[0] /= 100
		}
		return grey(parts[0]), n, true
	}
	if name[0] == 'h' {
		return hsl(parts[0], parts[1]/100, parts[2]/100, clamp(alpha)), n, true
	}
	for j := range 3 {
		if units[j] == "%" {
			parts[j] *= 2.55
		}
	}
	return rgba{clamp(parts[0] / 255), clamp(parts[1] / 255), clamp(parts[2] / 255), clamp(alpha)}, n, true
}

func hsl(hue, saturation, light, alpha float64) rgba {
	part := func(n float64) float64 {
		k := math.Mod(n+hue/30, 12)
		return clamp(light - saturation*min(light, 1-light)*max(-1, min(k-3, 9-k, 1)))
	}
	return rgba{part(0), part(8), part(4), alpha}
}

// clamp returns v within 0 and 1, and 0 for what is not a number.
func clamp(v float64) float64 {
	if v > 0 {
		return min(v, 1)
	}
	return 0
}

// colourNames are the named colours (CSS Color Module Level 4, section 6.1).
var colourNames = func() map[string]string {
	m := map[string]string{}
	for entry := range strings.FieldsSeq(`aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff aquamarine=7fffd4 azure=f0ffff beige=f5f5dc
		bisque=ffe4c4 black=000000 blanchedalmond=ffebcd blue=0000ff blueviolet=8a2be2 brown=a52a2a burlywood=deb887 cadetblue=5f9ea0
		chartreuse=7fff00 chocolate=d2691e coral=ff7f50 cornflowerblue=6495ed cornsilk=fff8dc crimson=dc143c cyan=00ffff darkblue=00008b
		darkcyan=008b8b darkgoldenrod=b8860b darkgray=a9a9a9 darkgreen=006400 darkgrey=a9a9a9 darkkhaki=bdb76b darkmagenta=8b008b
		darkolivegreen=556b2f darkorange=ff8c00 darkorchid=9932cc darkred=8b0000 darksalmon=e9967a darkseagreen=8fbc8f darkslateblue=483d8b
		darkslategray=2f4f4f darkslategrey=2f4f4f darkturquoise=00ced1 darkviolet=9400d3 deeppink=ff1493 deepskyblue=00bfff dimgray=696969
		dimgrey=696969 dodgerblue=1e90ff firebrick=b22222 floralwhite=fffaf0 forestgreen=228b22 fuchsia=ff00ff gainsboro=dcdcdc
		ghostwhite=f8f8ff gold=ffd700 goldenrod=daa520 gray=808080 green=008000 greenyellow=adff2f grey=808080 honeydew=f0fff0 hotpink=ff69b4
		indianred=cd5c5c indigo=4b0082 ivory=fffff0 khaki=f0e68c lavender=e6e6fa lavenderblush=fff0f5 lawngreen=7cfc00 lemonchiffon=fffacd
		lightblue=add8e6 lightcoral=f08080 lightcyan=e0ffff lightgoldenrodyellow=fafad2 lightgray=d3d3d3 lightgreen=90ee90 lightgrey=d3d3d3
		lightpink=ffb6c1 lightsalmon=ffa07a lightseagreen=20b2aa lightskyblue=87cefa lightslategray=778899 lightslategrey=778899
		lightsteelblue=b0c4de lightyellow=ffffe0 lime=00ff00 limegreen=32cd32 linen=faf0e6 magenta=ff00ff maroon=800000 mediumaquamarine=66cdaa
		mediumblue=0000cd mediumorchid=ba55d3 mediumpurple=9370db mediumseagreen=3cb371 mediumslateblue=7b68ee mediumspringgreen=00fa9a
		mediumturquoise=48d1cc mediumvioletred=c71585 midnightblue=191970 mintcream=f5fffa mistyrose=ffe4e1 moccasin=ffe4b5 navajowhite=ffdead
		navy=000080 oldlace=fdf5e6 olive=808000 olivedrab=6b8e23 orange=ffa500 orangered=ff4500 orchid=da70d6 palegoldenrod=eee8aa
		palegreen=98fb98 paleturquoise=afeeee palevioletred=db7093 papayawhip=ffefd5 peachpuff=ffdab9 peru=cd853f pink=ffc0cb plum=dda0dd
		powderblue=b0e0e6 purple=800080 rebeccapurple=663399 red=ff0000 rosybrown=bc8f8f royalblue=4169e1 saddlebrown=8b4513 salmon=fa8072
		sandybrown=f4a460 seagreen=2e8b57 seashell=fff5ee sienna=a0522d silver=c0c0c0 skyblue=87ceeb slateblue=6a5acd slategray=708090
		slategrey=708090 snow=fffafa springgreen=00ff7f steelblue=4682b4 tan=d2b48c teal=008080 thistle=d8bfd8 tomato=ff6347 turquoise=40e0d0
		violet=ee82ee wheat=f5deb3 white=ffffff whitesmoke=f5f5f5 yellow=ffff00 yellowgreen=9acd32`) {
		name, value, _ := strings.Cut(entry, "=")
		m[name] = value
	}
	return m
}()
