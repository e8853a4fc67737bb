package bounce

import "strings"

// isAutoReply reports whether a program replied on behalf of the sender (RFC
// 3834), as in an absence note or a help desk receipt.
func (m *reportMail) isAutoReply() bool {
	if m.byDaemon() {
		return false
	}
	answers := m.auto == "auto-replied" || m.auto == "auto-notified"
	if answers && len(m.failed) == 0 || m.vacation {
		return !containsAny(m.subject, bounceSubjects)
	}
	return beginsWithAny(strings.ToLower(m.subject), autoSubjects)
}

// autoReply reads an automatic reply.
func (m *reportMail) autoReply() (rep Report) {
	if !m.hasFrom || !m.isAutoReply() {
		return rep
	}
	email := plausibleAddress(m.from.Email)
	if email == "" {
		return rep
	}
	rep.Recipients = []Recipient{{Email: email, Outcome: AutoReplied}}
	return rep
}

func beginsWithAny(s string, list []string) bool {
	for _, prefix := range list {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// autoSubjects are the prefixes of the subjects of automatic replies, in lower
// case.
var autoSubjects = []string{
	"automatic reply", "automated reply", "auto-reply", "autoreply", "auto reply", "auto response", "auto-response", "autoresponse", "automatic response",
	"out of office", "out-of-office", "out of the office", "ooo:", "vacation reply", "on vacation", "i am out of", "away from",
	"automatische antwort", "abwesenheit", "abwesend", "antwort automatisch", "réponse automatique", "absence du bureau", "absent du bureau", "message d'absence",
	"respuesta automática", "respuesta automatica", "fuera de la oficina", "risposta automatica", "fuori sede", "fuori ufficio", "resposta automática", "ausência",
	"automatisch antwoord", "afwezig", "autosvar", "automatiskt svar", "automatisk svar", "frånvaro", "fravær", "automaattinen vastaus",
	"automatyczna odpowiedź", "automatická odpověď", "otomatik yanıt", "автоответ", "автоматический ответ", "автоматична відповідь",
	"自动回复", "自動回覆", "自動返信", "자동 회신", "자동 응답", "balasan otomatis", "trả lời tự động", "الرد التلقائي", "स्वचालित",
}
