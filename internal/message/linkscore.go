package message

import (
	"cmp"
	"slices"
	"strings"
)

// actionScore is the least score of the link that is meant to be followed.
const actionScore = 6

var (
	// actionWords ask to do what the mail was sent for.
	actionWords = []string{
		"verif", "confirm", "activat", "validat", "authenti", "authori", "sign in", "signin", "signing in", "sign-in", "log in", "log-in", "login", "logging in", "log on",
		"reset", "set your password", "set a password", "create password", "choose a password", "new password", "change password", "recover", "accept", "approve", "magic link", "complete", "finish", "get started", "join", "unlock", "claim",
		"bestätig", "verifizier", "aktivier", "anmelden", "einloggen", "zurücksetzen", "annehmen", "freischalten", "registrierung", "passwort",
		"confirmer", "confirmez", "vérif", "activer", "activez", "connecter", "connectez", "connexion", "réinitialis", "accepter", "valider",
		"verificar", "verifica", "confirma", "activa", "iniciar sesión", "inicia sesión", "restablec", "aceptar", "acepta", "acceder",
		"conferma", "attiva", "accedi", "reimposta", "accetta", "reset", "bevestig", "activeer", "inloggen", "herstel", "accepteer",
		"potwierd", "aktywuj", "zaloguj", "zresetuj", "zweryfikuj", "ativar", "ative", "entrar", "redefinir", "aceitar", "confirme",
		"bekräfta", "verifiera", "aktivera", "logga in", "återställ", "bekreft", "bekræft", "logg inn", "vahvista", "kirjaudu", "doğrula", "onayla", "etkinleştir", "giriş yap", "ověř", "potvrd",
		"подтверд", "активир", "войти", "войдите", "сброс", "принять", "підтверд", "активуй", "увійти", "επιβεβαί", "σύνδεση", "konfirmasi", "aktifkan", "masuk", "xác nhận", "xác minh", "kích hoạt",
		"验证", "驗證", "确认", "確認", "激活", "啟用", "登录", "登入", "重置", "重設", "認証", "登録を完了", "ログイン", "有効化", "再設定", "인증", "확인", "활성화", "로그인", "재설정",
		"تأكيد", "تحقق", "تفعيل", "تسجيل الدخول", "תאשר", "אישור", "אימות", "सत्यापित", "पुष्टि", "ยืนยัน",
	}
	// pointWords only point: what to do stands around them.
	pointWords = []string{
		"click", "here", "open", "continue", "link", "button", "visit", "follow", "paste", "enter", "go to", "use the", "klick", "hier", "öffne", "cliquez", "ici", "clic", "aquí", "clicca", "qui", "klik", "kliknij", "clique", "aqui", "klicka", "här", "weiter", "continuer", "continuar",
		"нажмите", "ссылк", "перейдите", "点击", "點擊", "链接", "クリック", "url", "링크", "클릭", "tıkla",
	}
	// actionParts are parts of paths and queries that do something.
	actionParts = []string{
		"verif", "confirm", "activat", "validat", "reset", "magic", "login", "signin", "sign-in", "sign_in", "auth", "invit", "accept", "recover", "onetime", "one-time", "otp", "token", "approve", "optin", "opt-in", "bestaetig", "best%c3%a4tig", "aktivier", "confirmation", "double-opt", "signup", "register/",
	}
	// restWords are those of links that are not what a mail is for.
	restWords = []string{
		"learn more", "read more", "more info", "find out", "mehr erfahren", "en savoir plus", "más información", "scopri di più", "meer informatie", "saiba mais", "läs mer", "подробнее", "了解更多", "詳しく",
		"view", "check activity", "review activity", "see activity", "download", "read", "blog", "docs", "documentation", "help", "support", "contact", "follow us", "shop", "meeting", "website", "track",
	}
	// footerWords are those of links that stand at the foot of every mail.
	footerWords = []string{
		"unsubscribe", "unsub", "opt out", "opt-out", "optout", "manage preferences", "email preferences", "notification settings", "notification preferences", "manage notifications", "communication preferences", "update your preferences", "update preferences", "manage subscription", "manage your subscription", "email settings", "preference center", "stop receiving", "mute this", "turn off",
		"abmelden", "abbestellen", "austragen", "désabonner", "désinscri", "se désinscrire", "darse de baja", "cancelar suscripción", "cancelar la suscripción", "disiscriv", "annulla iscrizione", "afmelden", "uitschrijven", "wypisz", "zrezygnuj", "cancelar inscrição", "descadastr", "avregistrera", "avprenumer", "avmeld", "afmeld", "odhlásit", "abonelikten çık", "отписаться", "відписатися", "退订", "取消订阅", "取消訂閱", "配信停止", "수신거부", "إلغاء الاشتراك",
		"view in browser", "view in your browser", "view this email", "view online", "view it online", "web version", "webversion", "read online", "view as a web", "im browser", "online-version", "onlineversion", "voir en ligne", "version en ligne", "dans votre navigateur", "ver en el navegador", "ver en línea", "ver no navegador", "visualizza nel browser", "in de browser", "bekijk online", "w przeglądarce", "i webbläsaren", "открыть в браузере", "在浏览器中", "ブラウザで",
		"privacy", "terms of", "terms &", "terms and", "legal notice", "imprint", "impressum", "datenschutz", "agb", "cookie", "confidentialité", "mentions légales", "privacidad", "privacidade", "aviso legal", "note legali", "voorwaarden", "prywatno", "integritet", "конфиденциальност", "隐私", "プライバシー", "개인정보",
		"help center", "help centre", "help desk", "contact us", "contact support", "customer support", "support center", "hilfe", "kontakt", "centre d'aide", "ayuda", "aiuto", "ajuda", "hjälp", "faq",
	}
	// footerParts are the same in addresses.
	footerParts = []string{
		"unsub", "optout", "opt-out", "opt_out", "abmelden", "abbestell", "desabon", "desinscri", "email-preferences", "email_preferences", "/preferences", "notification-settings", "manage-subscription", "manage_subscription", "subscription-center",
		"/privacy", "privacy-policy", "/terms", "/legal", "/imprint", "/impressum", "/datenschutz", "/cookies", "view-in-browser", "viewinbrowser", "view_online", "webversion", "/faq",
	}
	// socialHosts are those that mails link to at their foot.
	socialHosts = []string{
		"twitter.com", "x.com", "facebook.com", "instagram.com", "linkedin.com", "youtube.com", "tiktok.com", "pinterest.com", "threads.net", "mastodon.social", "apps.apple.com", "itunes.apple.com", "play.google.com",
	}
)

// weigh scores a link by its own words, those before it, its address and the
// subject.
func (l *foundLink) weigh(subject string) {
	words := strings.ToLower(l.words)
	if schemeLen([]byte(head(words, 9))) > 0 {
		words = "" // it shows its address
	}
	context := strings.ToLower(l.context)
	line := context[strings.LastIndexByte(context, '\n')+1:]
	_, path, query := parseLink(l.url)
	asks := false
	switch {
	case containsAny(words, actionWords) && len(words) <= 80:
		l.score += 6
		asks = true
	case words == "" || containsAny(words, pointWords):
		if containsAny(line, actionWords) || containsAny(context, actionWords) && containsAny(context, pointWords) {
			l.score += 5
			asks = true
		} else if containsAny(context, pointWords) || words != "" {
			l.score += 3
		}
	}
	if containsAny(path, actionParts) || containsAny(query, actionParts) {
		l.score += 3
		asks = true
	}
	if hasSecret(path) || hasSecret(query) {
		l.score += 2
	}
	if containsAny(strings.ToLower(subject), actionWords) {
		l.score += 2
	}
	if containsAny(words, restWords) || words == "" && containsAny(line, restWords) {
		l.score -= 6
	}
	if strings.Trim(path, "/") == "" && query == "" {
		l.score -= 4
	}
	l.action = asks && l.score >= actionScore
}

// isFooter reports whether a link is one of those that stand at the foot of
// every mail and that nobody waits for.
func (l *foundLink) isFooter() bool {
	words := strings.ToLower(l.words)
	line := strings.ToLower(lastLine(l.context, 60))
	host, path, query := parseLink(l.url)
	switch {
	case containsAny(words, footerWords):
		return true
	case words == "" || containsAny(words, pointWords):
		if containsAny(line, footerWords) && !containsAny(line, actionWords) {
			return true
		}
	}
	if containsAny(words, actionWords) && !strings.Contains(path+query, "unsub") {
		return false
	}
	segments := strings.Count(strings.Trim(path, "/"), "/") + 1
	switch {
	case containsAny(path, footerParts) || strings.Contains(query, "unsub"):
		return true
	case slices.ContainsFunc(socialHosts, func(s string) bool { return host == s || strings.HasSuffix(host, "."+s) }):
		return segments <= 2
	case strings.HasPrefix(host, "help.") || strings.HasPrefix(host, "support.") || strings.HasPrefix(host, "faq."):
		return containsAny(words, restWords) || segments == 1 || containsAny(path, []string{"/articles", "/hc/", "/docs", "/topics", "/answer"})
	}
	return false
}

// lastLine returns the end of the last line of s, at most n bytes.
func lastLine(s string, n int) string {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if len(s) > n {
		s = strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// hasSecret reports whether a part of an address looks like a random token.
func hasSecret(s string) bool {
	run, digits, letters := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		var c byte
		if i < len(s) {
			c = s[i]
		}
		switch {
		case isDigit(c):
			digits++
		case 'a' <= c && c <= 'z' || c == '_' || c == '-':
			letters++
		default:
			if run >= 8 && digits >= 2 && letters >= 2 || run >= 20 && digits > 0 {
				return true
			}
			run, digits, letters = -1, 0, 0
		}
		run++
	}
	return false
}

// containsAny reports whether s contains one of the words. A short word must
// stand at the beginning of one.
func containsAny(s string, words []string) bool {
	if s == "" {
		return false
	}
	for _, w := range words {
		i := strings.Index(s, w)
		for i >= 0 {
			if i == 0 || len(w) > 6 || !isLetterBefore(s, i) {
				return true
			}
			next := strings.Index(s[i+1:], w)
			if next < 0 {
				break
			}
			i += next + 1
		}
	}
	return false
}

func isLetterBefore(s string, i int) bool {
	c := s[i-1]
	return 'a' <= c && c <= 'z'
}

// sortLinks puts the best first, and equal ones in the order of the mail.
func sortLinks(links []foundLink) {
	slices.SortStableFunc(links, func(a, b foundLink) int {
		return cmp.Or(boolOrder(b.action, a.action), cmp.Compare(b.score, a.score))
	})
}
