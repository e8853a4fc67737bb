package reply

import (
	"github.com/postroom/postroom/internal/mail/plaintext"
)

var (
	// wroteWords end the line that introduces a quoted message.
	wroteWords = []string{
		"wrote", "writes", "schrieb", "geschrieben", "a écrit", "écrit", "escribió", "escribio", "ha scritto", "scritto", "schreef", "geschreven", "escreveu", "napisał", "napisała", "napisał(a)", "pisze", "skrev", "kirjoitti",
		"написал", "написала", "написал(а)", "пишет", "пише", "написав", "napsal", "napsala", "napsal(a)", "napísal", "yazdı", "έγραψε", "a scris", "írta", "đã viết", "menulis", "เขียนว่า", "כתב", "كتب", "写道", "寫道", "のメール", "書きました", "작성", "님이 작성", "쓴 글", "ने लिखा", "şunu yazdı", "şunları yazdı", "написав(-ла)", "a írt", "ezt írta", "skreiv", "ha escrit", "tarihinde", "tarafından yazıldı", "schreef", "skriver", "napisao", "napisala je", "је написао", "написа", "rašė", "kirjutas", "rakstīja",
	}
	// addressWords speak to the other person, or of what they said.
	addressWords = []string{
		"you", "your", "yours", "said", "asked", "du", "dein", "deine", "deiner", "sie", "ihr", "ihre", "ihrer", "vous", "votre", "vos", "tu", "ton", "ta", "usted", "su", "tus",
		"lei", "tuo", "tua", "você", "seu", "sua", "je", "jouw", "uw", "din", "ditt", "вы", "ваш", "ваша", "ты", "твой",
	}
	// originalWords are between the dashes above a quoted message.
	originalWords = []string{
		"original message", "original appointment", "reply message", "ursprüngliche nachricht", "originalnachricht", "message d'origine", "message original", "message d’origine", "mensaje original", "messaggio originale", "oorspronkelijk bericht", "mensagem original",
		"ursprungligt meddelande", "originalmeddelande", "oprindelig besked", "oprindelig meddelelse", "opprinnelig melding", "alkuperäinen viesti", "wiadomość oryginalna", "oryginalna wiadomość", "původní zpráva", "исходное сообщение", "оригинальное сообщение", "orijinal mesaj", "αρχικό μήνυμα", "原始邮件", "原始郵件", "元のメッセージ", "원본 메일", "원본 메시지", "tin nhắn gốc", "thư gốc", "pesan asli", "pesan awal", "الرسالة الأصلية", "eredeti üzenet", "mesajul original", "mesaj original", "मूल संदेश", "ข้อความต้นฉบับ", "הודעה מקורית", "pôvodná správa", "izvorna poruka", "originele bericht", "opprinnelig melding", "alkuperäinen viesti", "oryginalna wiadomość", "wiadomość pierwotna", "вихідне повідомлення", "оригінальне повідомлення", "původní e-mail", "転送元", "原始信件", "原邮件",
	}
	forwardWords = []string{
		"forwarded message", "weitergeleitete nachricht", "message transféré", "mensaje reenviado", "messaggio inoltrato", "doorgestuurd bericht", "mensagem encaminhada", "vidarebefordrat", "videresendt", "wiadomość przekazana", "пересылаемое сообщение", "begin forwarded", "转发", "轉寄", "転送", "전달된",
	}
	// headerLabels are the names of header fields in a quoted message.
	headerLabels = plaintext.WordSet(`from|sent|date|to|cc|subject|reply-to|importance
		|von|gesendet|datum|an|betreff|de|envoyé|envoyé le|date d'envoi|à|a|objet|copie à|cc :|message du|sujet
		|enviado|enviado el|fecha|para|asunto|da|inviato|data|per|oggetto|van|verzonden|aan|onderwerp|data|assunto|enviada em|enviado em
		|från|skickat|till|ämne|fra|sendt|dato|til|emne|lähettäjä|lähetetty|päiväys|vastaanottaja|aihe|od|wysłano|wysłane|do|dw|temat|odesláno|komu|předmět|datum
		|от|отправлено|дата|кому|тема|від|надіслано|копия|gönderen|gönderilen|tarih|kime|konu|από|ημερομηνία|προς|θέμα
		|发件人|发送时间|收件人|主题|日期|抄送|寄件者|寄件日期|收件者|主旨|差出人|送信日時|送信者|宛先|件名|日時|kimden|gönderilme|gönderilme tarihi|dari|dikirim|tanggal|kepada|ke|subjek|perihal|من|تم الإرسال|التاريخ|إلى|الى|الموضوع|प्रेषक|भेजा गया|दिनांक|प्रति|विषय|feladó|dátum|címzett|tárgy|elküldve|küldve|de la|trimis|către|subiect|στάλθηκε|ngày|đã gửi|tới
		|gönderildi|gönderme tarihi|изпратено|до|относно|poslano|poslato|pošiljalac|kome|naslov|од|послато|за|коме|предмет
		|saatja|saadetud|adressaat|teema|nosūtīts|kam|temats|tēma|zadeva|nuo|išsiųsta|αποστολή|εστάλη|تاريخ الإرسال|ส่งเมื่อ|送信元|日付|受信者
		|寄件時間|傳送時間|enviat el|nork|bidalia|nori|gaia|daripada|dihantar|از|ارسال شده|به|موضوع|frá|efni|от кого
		|จาก|ส่ง|ถึง|เรื่อง|מאת|נשלח|אל|נושא|slato|za|predmet|odoslané|poslané|寄件人|收件人|发送日期|發送日期|日時|보낸시간|받는사람|보낸사람|참조|cc|보낸 사람|보낸 날짜|받는 사람|제목|날짜|từ|gửi|đến|chủ đề|enviat|per a|assumpte|tema`)
	// signatureStarts start a line that an email client adds.
	signatureStarts = []string{
		"sent from my ", "sent from ", "sent via ", "sent with ", "sent using ", "get outlook for", "download outlook", "von meinem ", "gesendet von ", "gesendet mit", "envoyé de mon", "envoyé depuis", "envoyé à partir", "enviado desde mi", "enviado desde", "inviato da", "verzonden vanaf", "verstuurd vanaf", "enviado do meu", "enviado de meu",
		"skickat från", "sendt fra", "lähetetty ", "wysłane z", "wysłano z", "odesláno z", "отправлено с", "отправлено из", "надіслано з", "iphone'umdan gönderildi", "发自我的", "從我的", "iphoneから送信", "나의 iphone에서",
	}
)

// sentWords and deviceWords occur together on the line that a mobile client
// adds: "iPhone'umdan gönderildi".
var (
	sentWords = []string{
		"sent", "gesendet", "envoyé", "enviado", "enviada", "inviato", "inviata", "verzonden", "verstuurd", "wysłane", "wysłano", "skickat", "sendt", "odesláno", "odoslané", "lähetetty", "gönderildi", "отправлено", "надіслано", "στάλθηκε", "trimis",
		"küldve", "elküldve", "gửi từ", "dikirim", "مرسل", "مُرسل", "أُرسلت", "أرسلت", "تم الإرسال", "भेजा", "ส่งจาก", "נשלח", "发自", "發自", "传送", "傳送", "送信", "보냄", "보냈", "beziehen", "get", "obtenir", "télécharger", "obtener", "obter", "ottieni", "scarica", "pobierz", "hämta",
		"hent", "hanki", "získat", "получить", "отримати", "edinin", "获取", "取得", "を入手", "dapatkan", "tải", "الحصول",
	}
	deviceWords = []string{
		"iphone", "ipad", "android", "galaxy", "samsung", "huawei", "xiaomi", "redmi", "blackberry", "windows", "outlook", "yahoo", "smartphone", "handy", "mail", "смартфон", "смартфона", "телефона", "スマートフォン",
	}
)

// aboveWords occur on the line above which a help desk asks to reply.
var aboveWords = []string{
	"reply above this line", "type your reply above", "please reply above", "write above this line", "antworten sie oberhalb dieser", "antwort oberhalb dieser", "répondre au-dessus de cette ligne", "réponse au-dessus de cette ligne", "responda por encima de esta línea",
	"responder por encima de esta línea", "rispondere sopra questa riga", "rispondi sopra questa riga", "responda acima desta linha", "antwoord boven deze regel", "svara ovanför denna", "skriv dit svar over denne",
}

// aboveStems has a part of each line in aboveWords. The search for them is fast
// because they begin with letters that are rare in text.
var aboveStems = []string{"bove", "BOVE", "berhalb", "-dessus", "cima", "questa", "vanför", "ver denne"}
