package message

import "sync"

// Kinds of words in and before a link, and of parts of its address.
const (
	actionWord wordKind = 1 << iota // asks to do what the mail was sent for
	pointWord                       // only points: what to do stands around it
	restWord                        // of a link that is not what a mail is for
	footerWord                      // of one that stands at the foot of every mail
)

// linkWords are the words by kind, in lower case, each also as the beginning
// of a longer one.
var linkWords = map[wordKind]string{
	actionWord: `verif|confirm|activat|validat|authenti|authori|sign in|signin|signing in|sign-in|log in|log-in|login|logging in|log on|reset|set your password|set a password|create password|choose a password
		|new password|change password|recover|accept|approve|magic link|complete|review and sign|sign document|sign the document|sign now|finish|get started|join|unlock|claim|bestätig|verifizier|aktivier|anmelden|einloggen|zurücksetzen|annehmen|freischalten
		|registrierung|passwort|confirmer|confirmez|vérif|activer|activez|connecter|connectez|connexion|réinitialis|accepter|valider|verificar|verifica|confirma|activa|iniciar sesión|inicia sesión|restablec
		|aceptar|acepta|acceder|conferma|completare|completa la|registrazione|attiva|accedi|reimposta|accetta|bevestig|activeer|inloggen|herstel|accepteer|potwierd|aktywuj|zaloguj|zresetuj|zweryfikuj|ativar|ative|entrar|redefinir|aceitar
		|confirme|bekräfta|verifiera|aktivera|logga in|återställ|bekreft|bekræft|logg inn|vahvista|kirjaudu|doğrula|onayla|etkinleştir|giriş yap|ověř|potvrd|подтверд|активир|войти|войдите|сброс|принять
		|підтверд|активуй|увійти|επιβεβαί|σύνδεση|konfirmasi|aktifkan|masuk|xác nhận|xác minh|kích hoạt|验证|驗證|确认|確認|激活|啟用|登录|登入|重置|重設|認証|登録を完了|ログイン|有効化|再設定|인증|확인|활성화|로그인|재설정|تأكيد|تحقق|تفعيل|تسجيل الدخول|תאשר
		|אישור|אימות|सत्यापित|पुष्टि|ยืนยัน
		|neues passwort|neues kennwort|passwort festlegen|nouveau mot de passe|nueva contraseña|contraseña nueva|nuova password|nova senha|nova palavra-passe|nieuw wachtwoord|wachtwoord|nowe hasło|nowego hasła|ustaw|nytt lösenord|lösenord
		|ny adgangskode|nulstil|nytt passord|nové heslo|nového hesla|obnov|yeni şifre|yeni bir şifre|yeni parola|sıfırla|новый пароль|восстанов|новий пароль|відновл|скидан|新密码|新密碼|找回密码|パスワードを設定|新しいパスワード|새 비밀번호|비밀번호
		|mật khẩu mới|đặt lại|kata sandi baru|atur ulang|mengatur ulang|كلمة مرور جديدة|إعادة تعيين|नया पासवर्ड|रीसेट|รีเซ็ต|รหัสผ่านใหม่|סיסמה חדשה|איפוס`,
	pointWord: `click|here|open|continue|link|button|visit|follow|paste|enter|go to|use the|klick|hier|öffne|cliquez|ici|clic|aquí|clicca|qui|klik|kliknij|clique|aqui|klicka|här|weiter|continuer|continuar|нажмите
		|ссылк|перейдите|点击|點擊|链接|クリック|url|링크|클릭|tıkla|bağlantı|länk|odkaz|kliknět|nhấp|liên kết|tautan|klik|انقر|الرابط|लिंक|क्लिक|посилан|перейдіть|натисн|лінк|לחצ|קישור|ลิงก์|คลิก|リンク|こちら|아래|여기|enlace|haz clic|lien|link`,
	restWord: `learn more|read more|more info|find out|mehr erfahren|en savoir plus|más información|scopri di più|meer informatie|saiba mais|läs mer|подробнее|了解更多|詳しく|view|check activity|review activity
		|see activity|download|read|blog|docs|documentation|help|support|contact|follow us|shop|meeting|website|track`,
	footerWord: `unsubscribe|opt out|opt-out|optout|manage preferences|email preferences|notification settings|notification preferences|manage notifications|communication preferences|update your preferences
		|update preferences|manage subscription|manage your subscription|email settings|preference center|stop receiving|mute this|turn off|abmelden|abbestellen|austragen|désabonner|désinscri|se désinscrire
		|darse de baja|cancelar suscripción|cancelar la suscripción|disiscriv|annulla iscrizione|afmelden|uitschrijven|wypisz|zrezygnuj|cancelar inscrição|descadastr|avregistrera|avprenumer|avmeld|afmeld
		|odhlásit|abonelikten çık|avsluta prenumeration|hủy đăng ký|berhenti berlangganan|सदस्यता|ยกเลิกการรับ|הסרה מרשימת|afmeld|meld je af|baja|rezygnacja|wypisz się|отписаться|відписатися|退订|取消订阅|取消訂閱|配信停止|수신거부|إلغاء الاشتراك|view in browser|view in your browser|view this email|view online|view it online|web version|webversion
		|read online|view as a web|im browser|online-version|onlineversion|voir en ligne|version en ligne|dans votre navigateur|ver en el navegador|ver en línea|ver no navegador|visualizza nel browser
		|in de browser|bekijk online|w przeglądarce|i webbläsaren|открыть в браузере|在浏览器中|ブラウザで|privacy|terms of|terms &|terms and|legal notice|imprint|impressum|datenschutz|agb|cookie|confidentialité
		|mentions légales|privacidad|privacidade|aviso legal|note legali|voorwaarden|prywatno|integritet|конфиденциальност|隐私|プライバシー|개인정보|help center|help centre|help desk|contact us|contact support
		|customer support|support center|hilfe|kontakt|centre d'aide|ayuda|aiuto|ajuda|hjälp|faq|unsub`,
}

// linkParts are parts of paths and queries.
var linkParts = map[wordKind]string{
	actionWord: `verif|confirm|conferma|activat|activar|attivazion|validat|reset|magic|login|signin|sign-in|sign_in|auth/|auth?|auth=|authenti|authori|invit|accept|recover|onetime|one-time|otp|token|approve|optin|opt-in|bestaetig|best%c3%a4tig|aktivier|double-opt
		|register|signup|sign-up|emailverif|emailconfirm|oauth|passwordreset|password-reset|useractiv|sso`,
	footerWord: `unsub|optout|opt-out|opt_out|abmelden|abbestell|desabon|desinscri|email-preferences|email_preferences|preferences|notification-settings|manage-subscription|manage_subscription|subscription-center
		|privacy|privacy-policy|terms|legal|imprint|impressum|datenschutz|cookies|view-in-browser|viewinbrowser|view_online|webversion|faq`,
}

// socialHosts are those that mails link to at their foot.
var socialHosts = []string{
	"twitter.com", "x.com", "facebook.com", "instagram.com", "linkedin.com", "youtube.com", "tiktok.com", "pinterest.com", "threads.net", "mastodon.social", "apps.apple.com", "itunes.apple.com", "play.google.com",
}

// knownLinkWords and knownLinkParts are built once and only read.
var (
	knownLinkWords = sync.OnceValue(func() *wordTable { return stemTable(linkWords) })
	knownLinkParts = sync.OnceValue(func() *wordTable { return stemTable(linkParts) })
)

func stemTable(words map[wordKind]string) *wordTable {
	t := &wordTable{}
	for kind, list := range words {
		t.add(kind, list)
	}
	for _, list := range t {
		for i := range list {
			list[i].stem = true
		}
	}
	t.sort()
	return t
}

// kindsIn returns the kinds of all words of the table in a lower-case text.
func (t *wordTable) kindsIn(text string) (kinds wordKind) {
	inWord := false
	for i := 0; i < len(text); {
		e := t.match(text[i:], inWord)
		if e != nil {
			kinds |= e.kind
			i += len(e.text)
			inWord = !e.anywhere
			continue
		}
		inWord = isWordByte(text[i])
		i++
	}
	return kinds
}

// isWordByte reports whether c is of a letter or digit; the bytes of other
// scripts are taken as letters.
func isWordByte(c byte) bool { return isAlnum(c) || c >= 0x80 }
