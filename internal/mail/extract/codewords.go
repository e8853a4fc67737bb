package extract

// wordKind is what a word says about the numbers near it.
type wordKind uint8

const (
	noWord     wordKind = iota
	codeNoun            // "code", "OTP": the number is one
	weakNoun            // "PIN", "passcode": it is one unless it opens something else
	openNoun            // "confirmation code": one as good as "code", with the limit of a weak one
	qualifier           // "verification", "login": what the code is for
	useVerb             // "enter", "use": a number to be typed
	oldWord             // "previous", "no longer valid": the number was a code
	otherThing          // "order", "phone": the number names something else
	softThing           // "account": likewise, if it directly follows
	elsewhere           // "meeting", "gift card": weak nouns open something else
	ofCode              // "dress", "postal": beside the noun it makes a code of another kind
	ofShop              // "promo", "discount": likewise, and it sells something wherever it stands
)

// codeWord is a word found in a line.
type codeWord struct {
	start, end int
	kind       wordKind
	of         bool // beside a code it makes one of another kind
	opens      bool // it is of what has a PIN or a number of its own
}
