package message

import "strings"

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
