package extract

// wordKind is what a word says about nearby numbers.
type wordKind uint8

const (
	noWord     wordKind = iota
	codeNoun            // "code", "OTP": the number is a code
	weakNoun            // "PIN", "passcode": a code, unless it opens something else
	figures             // "digits": a code, if a verb in the sentence asks to enter them
	openNoun            // "confirmation code": as strong as "code", but with the exception of weakNoun
	qualifier           // "verification", "login": the purpose of the code
	useVerb             // "enter", "use": a number to type
	oldWord             // "previous", "no longer valid": the number was a code
	otherThing          // "order", "phone": the number names something else
	softThing           // "account": likewise, if it is directly before the number
	elsewhere           // "meeting", "gift card": a weak noun opens something else
	ofCode              // "dress", "postal": next to a noun, the code is of another kind
	ofShop              // "promo", "discount": likewise, and it marks its line as advertising
	kinds
)

// kindNames are the names of the kinds in the names of signs.
var kindNames = []string{"", "code", "weak", "digits", "open", "qualifier", "verb", "old", "thing", "soft", "elsewhere", "other code", "shop"}

// nouns is the set of the kinds that name a code.
const nouns uint32 = 1<<codeNoun | 1<<weakNoun | 1<<openNoun

// codeWord is a word found in a line.
type codeWord struct {
	start, end int
	kind       wordKind
	of         bool // next to a noun, the code is of another kind
	opens      bool // names something that has a PIN or number of its own
}
