package extract

import (
	"embed"
	"strings"
	"sync"
)

// wordFiles holds the words that say what a number or a link is for: one file
// per language, and general.txt with words of many. A line is a section and its
// words: "code: kod | kody*". The words are in lower case; one that ends in "*"
// stands for all words that begin with it.
//
//go:embed words/*.txt
var wordFiles embed.FS

// wordSections returns the words of all files by section.
var wordSections = sync.OnceValue(func() map[string][]string {
	sections := map[string][]string{}
	files, _ := wordFiles.ReadDir("words") // reading an embedded directory does not fail
	for _, file := range files {
		text, _ := wordFiles.ReadFile("words/" + file.Name())
		for line := range strings.Lines(string(text)) {
			section, words, ok := strings.Cut(strings.TrimSpace(line), ":")
			if !ok {
				continue
			}
			for word := range strings.SplitSeq(words, "|") {
				sections[section] = append(sections[section], strings.TrimSpace(word))
			}
		}
	}
	return sections
})

// codeSections and linkSections map the sections of the files to word kinds.
// Other sections are "unit" (units of amounts) and those of wordSets.
var (
	codeSections = map[string]wordKind{
		"code": codeNoun, "weak": weakNoun, "digits": figures, "open": openNoun, "qualifier": qualifier, "verb": useVerb, "old": oldWord,
		"thing": otherThing, "soft": softThing, "elsewhere": elsewhere, "named": ofCode, "shop": ofShop,
	}
	linkSections = map[string]wordKind{"action": actionWord, "point": pointWord, "rest": restWord, "footer": footerWord, "done": doneWord, "unless": unlessWord}
)

// wordSets are the sections that are matched as whole words.
var wordSets = sync.OnceValue(func() (sets struct {
	copula  map[string]bool // "is"
	article map[string]bool // "the", between "is" and a code
	company map[string]bool // "Ltd", in the address of a company; case matters
}) {
	set := func(section string) map[string]bool {
		words := map[string]bool{}
		for _, word := range wordSections()[section] {
			words[word] = true
		}
		return words
	}
	sets.copula, sets.article, sets.company = set("copula"), set("article"), set("company")
	return sets
})
