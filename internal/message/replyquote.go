package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// wroteWords end the line that introduces a quoted mail.
	wroteWords = []string{
		"wrote", "writes", "schrieb", "a écrit", "écrit", "escribió", "escribio", "ha scritto", "scritto", "schreef", "geschreven", "escreveu", "napisał", "napisała", "napisał(a)", "pisze", "skrev", "kirjoitti",
		"написал", "написала", "написал(а)", "пишет", "пише", "написав", "napsal", "napsala", "napsal(a)", "napísal", "yazdı", "έγραψε", "a scris", "írta", "đã viết", "menulis", "เขียนว่า", "כתב", "كتب", "写道", "寫道", "のメール", "書きました", "작성", "님이 작성",
	}
	// originalWords stand between the dashes above a quoted mail.
	originalWords = []string{
		"original message", "original appointment", "reply message", "ursprüngliche nachricht", "originalnachricht", "message d'origine", "message original", "message d’origine", "mensaje original", "messaggio originale", "oorspronkelijk bericht", "mensagem original",
		"ursprungligt meddelande", "originalmeddelande", "oprindelig besked", "oprindelig meddelelse", "opprinnelig melding", "alkuperäinen viesti", "wiadomość oryginalna", "oryginalna wiadomość", "původní zpráva", "исходное сообщение", "оригинальное сообщение", "orijinal mesaj", "αρχικό μήνυμα", "原始邮件", "原始郵件", "元のメッセージ", "원본 메일", "원본 메시지",
	}
	forwardWords = []string{
		"forwarded message", "weitergeleitete nachricht", "message transféré", "mensaje reenviado", "messaggio inoltrato", "doorgestuurd bericht", "mensagem encaminhada", "vidarebefordrat", "videresendt", "wiadomość przekazana", "пересылаемое сообщение", "begin forwarded", "转发", "轉寄", "転送", "전달된",
	}
	// headerLabels name the fields of the quoted mail's header.
	headerLabels = labelSet(`from|sent|date|to|cc|subject|reply-to|importance
		|von|gesendet|datum|an|betreff|de|envoyé|envoyé le|date d'envoi|à|a|objet|copie à|cc :|message du|sujet
		|enviado|enviado el|fecha|para|asunto|da|inviato|data|per|oggetto|van|verzonden|aan|onderwerp|data|assunto|enviada em|enviado em
		|från|skickat|till|ämne|fra|sendt|dato|til|emne|lähettäjä|lähetetty|päiväys|vastaanottaja|aihe|od|wysłano|wysłane|do|dw|temat|odesláno|komu|předmět|datum
		|от|отправлено|дата|кому|тема|від|надіслано|копия|gönderen|gönderilen|tarih|kime|konu|από|ημερομηνία|προς|θέμα
		|发件人|发送时间|收件人|主题|日期|抄送|寄件者|寄件日期|收件者|主旨|差出人|送信日時|送信者|宛先|件名|日時|보낸 사람|보낸 날짜|받는 사람|제목|날짜|từ|gửi|đến|chủ đề`)
	// signatureStarts begin a line that a mail program adds.
	signatureStarts = []string{
		"sent from my ", "sent from ", "sent via ", "sent with ", "sent using ", "get outlook for", "download outlook", "von meinem ", "gesendet von ", "gesendet mit", "envoyé de mon", "envoyé depuis", "envoyé à partir", "enviado desde mi", "enviado desde", "inviato da", "verzonden vanaf", "verstuurd vanaf", "enviado do meu", "enviado de meu",
		"skickat från", "sendt fra", "lähetetty ", "wysłane z", "wysłano z", "odesláno z", "отправлено с", "отправлено из", "надіслано з", "iphone'umdan gönderildi", "发自我的", "從我的", "iphoneから送信", "나의 iphone에서",
	}
)

// signatureLetters are the first letters of signatureStarts.
const signatureLetters = "sgdveilwoi"

func labelSet(list string) map[string]bool {
	set := map[string]bool{}
	for label := range strings.SplitSeq(list, "|") {
		set[strings.TrimSpace(label)] = true
	}
	return set
}

// separatorKind tells a line like "-----Original Message-----".
func separatorKind(line string) quoteKind {
	trimmed := strings.Trim(line, " *_")
	dashed := strings.HasPrefix(trimmed, "--")
	if !dashed && !strings.HasPrefix(trimmed, "Begin forwarded") {
		return noQuote
	}
	words := strings.ToLower(strings.Trim(trimmed, "-=_* :"))
	switch {
	case words == "" || len(words) > 200:
	case hasAny(words, originalWords) && len(words) <= 60:
		return replyQuote
	case hasAny(words, forwardWords) && len(words) <= 60:
		return forwardQuote
	case strings.HasSuffix(trimmed, "--") && endsWithWrote(words) && hasDate(words):
		return replyQuote
	}
	return noQuote
}

const (
	maxAttributionLines = 4
	maxAttribution      = 500 // bytes
)

// attribution returns the number of lines from i on that read "On Monday, Ann
// <ann@example.com> wrote:", which mail programs wrap, or 0. It knows them by
// the verb, or by the address, together with a date.
func (r *replyReader) attribution(i int) int {
	if !r.colonFollows(i) {
		return 0
	}
	joined := ""
	for n := 1; n <= maxAttributionLines && i+n <= len(r.lines); n++ {
		line := r.lines[i+n-1]
		if line == "" || isQuoted(line) && n > 1 {
			return 0
		}
		joined += " " + line
		if len(joined) > maxAttribution {
			return 0
		}
		if !endsWithColon(line) {
			continue
		}
		low := strings.ToLower(strings.TrimRight(joined, ":： "))
		if !hasDate(low) || n > 1 && !startsAttribution(r.lines[i]) {
			continue
		}
		if endsWithWrote(low) || strings.HasSuffix(low, ">") && strings.Contains(low, "@") {
			return n
		}
	}
	return 0
}

// colonFollows reports whether line i or one that it may be wrapped to ends
// with a colon.
func (r *replyReader) colonFollows(i int) bool {
	for _, line := range r.lines[i:min(i+maxAttributionLines, len(r.lines))] {
		if line == "" {
			return false
		}
		if endsWithColon(line) {
			return true
		}
	}
	return false
}

func endsWithColon(line string) bool {
	return strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：")
}

// startsAttribution reports whether a line can be the first of some: it has a
// digit and does not end a sentence.
func startsAttribution(line string) bool {
	return strings.IndexAny(line, "0123456789") >= 0 && !strings.HasSuffix(line, ".")
}

// endsWithWrote reports whether the verb stands at the end, before a name at
// most.
func endsWithWrote(low string) bool {
	if len(low) > 200 {
		low = low[len(low)-200:]
	}
	return hasAny(low, wroteWords)
}

// hasDate reports whether a line has a year, or a time, or an address.
func hasDate(low string) bool {
	if strings.Contains(low, "@") {
		return true
	}
	run := 0
	for i := 0; i < len(low); i++ {
		if !isDigit(low[i]) {
			if run > 0 && run <= 2 && (low[i] == ':' || low[i] == '.') && i+2 < len(low) && isDigit(low[i+1]) && isDigit(low[i+2]) {
				return true
			}
			run = 0
			continue
		}
		if run++; run == 4 {
			return true
		}
	}
	return false
}

// headerBlock returns the number of lines from i on that show the header of
// the quoted mail, at least three of its fields, or 0.
func (r *replyReader) headerBlock(i int) int {
	fields, n := 0, 0
	for i+n < len(r.lines) && n < 12 {
		line := strings.TrimLeft(r.lines[i+n], " *\t")
		switch {
		case isLabelled(line):
			fields++
		case n == 0:
			return 0
		case line == "" && fields < 3 && n < 3: // some leave a line empty between
		case line == "":
			if fields >= 3 {
				return n
			}
			return 0
		case fields < 2 && n > 2:
			return 0
		}
		n++
	}
	if fields >= 3 {
		return n
	}
	return 0
}

// isLabelled reports whether a line begins with the name of a header field.
func isLabelled(line string) bool {
	start := head(line, 40)
	end := strings.IndexByte(start, ':')
	if end < 0 {
		end = strings.Index(start, "：")
	}
	if end <= 0 {
		return false
	}
	label := strings.Trim(strings.ToLower(line[:end]), " *\u00a0")
	return headerLabels[label]
}

// isSignature reports whether a signature begins at a line: the mark of
// RFC 3676 section 4.3, or a line that a telephone adds.
func isSignature(line string) bool {
	if line == "" || len(line) > 100 {
		return false
	}
	switch c := line[0]; {
	case c == '-', c == '_', c == 0xe2: // that is "—"
		if line == "--" || line == "—" || line == "__" || len(line) >= 20 && strings.Trim(line, "_") == "" {
			return true
		}
	}
	line = strings.TrimLeft(line, " *_<[(")
	if line == "" || line[0] < utf8.RuneSelf && strings.IndexByte(signatureLetters, lowerASCII(line[0])) < 0 {
		return false
	}
	low := strings.ToLower(line)
	for _, start := range signatureStarts {
		if strings.HasPrefix(low, start) {
			return true
		}
	}
	return false
}

// isRule reports whether a line is only drawn.
func isRule(line string) bool {
	return len(line) >= 3 && strings.Trim(line, "-_=*~#+ ") == ""
}

// hasAny reports whether s contains one of the words as a word.
func hasAny(s string, words []string) bool {
	for _, w := range words {
		for from := 0; ; {
			i := strings.Index(s[from:], w)
			if i < 0 {
				break
			}
			i += from
			if !letterBefore(s[:i]) && !letterAfter(s[i+len(w):]) {
				return true
			}
			from = i + len(w)
		}
	}
	return false
}

func letterBefore(s string) bool {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i]&0xc0 != 0x80 {
			return startsWithWordLetter(s[i:])
		}
	}
	return false
}

func letterAfter(s string) bool { return startsWithWordLetter(s) }

// startsWithWordLetter reports whether s goes on a word of a script that is
// written with spaces.
func startsWithWordLetter(s string) bool {
	for _, r := range s {
		return unicode.IsLetter(r) && !isUnspaced(r)
	}
	return false
}
