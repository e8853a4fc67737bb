package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Reason is the cause of a failed delivery.
type Reason string

// The reasons. A bounce is hard only if the address is wrong.
const (
	ReasonNone      Reason = ""                  // the report gives no known reason
	ReasonNoMailbox Reason = "no_mailbox"        // hard: the user does not exist
	ReasonNoDomain  Reason = "no_domain"         // hard: the domain does not exist, or accepts no mail
	ReasonMoved     Reason = "moved"             // hard: the user has moved
	ReasonFull      Reason = "mailbox_full"      // over quota
	ReasonDisabled  Reason = "mailbox_disabled"  // suspended, frozen or long unused
	ReasonTooLarge  Reason = "too_large"         // the message, for the mailbox or the server
	ReasonSender    Reason = "sender_rejected"   // our address, or our permission to use it
	ReasonUnproven  Reason = "not_authenticated" // SPF, DKIM, DMARC, reverse DNS, TLS
	ReasonBlocked   Reason = "blocked"           // our server: block lists, reputation
	ReasonRate      Reason = "rate_limited"      // too many messages or connections
	ReasonContent   Reason = "content_rejected"  // spam, viruses, forbidden or malformed content
	ReasonRefused   Reason = "refused"           // recipient's wish or a policy
	ReasonRelay     Reason = "relay_denied"      // the server does not accept mail for the domain
	ReasonExpired   Reason = "expired"           // retried for too long
	ReasonNetwork   Reason = "network"           // routes, names, loops
	ReasonSystem    Reason = "system"            // fault of the remote server
)

// hard reports whether r means that the address is wrong.
func (r Reason) hard() bool {
	return r == ReasonNoMailbox || r == ReasonNoDomain || r == ReasonMoved
}

// reasonOf returns the reason that a server's text gives. Earlier entries of
// reasonWords take precedence; "*" in a pattern matches any text.
func reasonOf(text string) Reason {
	if text = plainWords(text); text == "" {
		return ReasonNone
	}
	for i := range reasonWords {
		for _, pattern := range reasonWords[i].patterns {
			if inOrder(text, pattern) {
				return reasonWords[i].reason
			}
		}
	}
	return ReasonNone
}

// inOrder reports whether text contains the pieces of pattern, split at "*", in
// order.
func inOrder(text, pattern string) bool {
	for {
		piece, more, ok := strings.Cut(pattern, "*")
		at := strings.Index(text, piece)
		if at < 0 {
			return false
		}
		if !ok {
			return true
		}
		text, pattern = text[at+len(piece):], more
	}
}

// maxSaid limits how much of a server's text is read, in bytes.
const maxSaid = 4 << 10

// plainWords returns the words of text in lower case, with one space around
// each. It replaces addresses with "@" and removes links and the codes of
// continued replies, so that the names in them do not match.
func plainWords(text string) string {
	words := strings.Fields(strings.ToLower(plaintext.Truncate(text, maxSaid)))
	var b strings.Builder
	b.WriteByte(' ')
	for _, w := range words {
		switch {
		case strings.Contains(w, "://"), strings.HasPrefix(w, "www."), isContinuation(w):
			continue
		case strings.IndexByte(w, '@') >= 0:
			w = "@"
		}
		b.WriteString(strings.ReplaceAll(w, "’", "'"))
		b.WriteByte(' ')
	}
	return b.String()
}

// isContinuation reports whether w starts a line of a multiline reply: "550-"
// or "550-5.7.1".
func isContinuation(w string) bool {
	if len(w) < 4 || w[3] != '-' || replyCode(w[:3]) == 0 {
		return false
	}
	return strings.Trim(w[4:], "0123456789.") == ""
}

// reasonWords are phrases of servers by their meaning, in lower case.
var reasonWords = []struct {
	reason   Reason
	patterns []string
}{
	{ReasonRefused, wishWords},
	{ReasonUnproven, []string{
		"dmarc", "dkim", " spf ", " spf:", "sender policy framework", "unauthenticated", "not authenticated", "authentication checks",
		"sender authentication", "authentication required", "authrequired", "must be authenticated", "reverse dns", "rdns", " ptr ",
		"ip name lookup", "client host rejected: cannot find", "may not be mail exchanger", "mismatches client", "fcrdns",
		"starttls", "must issue a", "helo command rejected",
	}},
	{ReasonNoMailbox, []string{
		"account or domain may not exist", "address rejected @", "previously bounced address", "recipient address rejected: access denied", "recipient address rejected. access denied",
		"recipient addresses rejected", "not listed in public",
	}},
	{ReasonNetwork, []string{"not found, try again", "name server: * try again", "name service error * try again"}},
	{ReasonNoDomain, []string{"malformed or unexpected name server"}},
	{ReasonRate, []string{
		"rate limit", "rate exceeded", "ratelimit", "too many connections", "too many recipients", "too many messages",
		"too many concurrent", "too many errors", "too much mail", "too many mails", "frequency limited", "unexpected volume",
		"receiving mail at a rate", "sending rate", "connection rate", "daily relay quota", "quota for the day", "daily limit", "hourly limit", "sending limit", "throttl", "slow down",
		"sessions exceeded", "limit on the number of", "greylist", "graylist", "grey listed", "greylisted",
	}},
	{ReasonBlocked, []string{
		"blacklist", "black list", "blocklist", "block list", "block-list", "blocked by", "blocked for", "blocked -", "blocked using",
		"blocked ip", "ip blocked", "been blocked", "dnsbl", " rbl ", "spamhaus", "spamcop", "barracudacentral", "sorbs", "senderbase",
		"reputation", "is listed", "listed in rbl", "listed at ", "listed by ", "banned", "open relay", "client host rejected", "connection refused by policy",
		"your ip ", "dynamic ip", "dialup", "access denied", "(bl)", "service refuse", "not accepting mail from", "bad ip",
		"connections not accepted", "refused to talk to", "poor sender", "suspicious", "blocked",
	}},
	{ReasonFull, []string{
		"mailbox full", "mailbox is full", "mailfolder is full", "mail box full", "mailbox * full", "inbox full", "inbox is full",
		"over quota", "overquota", "quota exceeded", "exceeded quota", "quota exceed", "exceeds quota", "exceeded * quota", "over * quota",
		"quota full", "quota limit", "mailbox size", "exceeds allowed size", "exceeded the local limit", "exceeded storage", "storage limit", "out of storage",
		"storage quota", "mailbox quota", "user quota", "disk quota", "not enough space", "insufficient mailbox", "full mailbox",
		"mailbox exceeded", "mailbox has exceeded", "mailboxfull", "account is full", "account full", "disk full for user", "quota ",
		"postfach voll", "postfach ist voll", "postfachs ist voll", "speicherplatz", "boite pleine", "boîte pleine", "boite aux lettres pleine",
		"buzón lleno", "buzon lleno", "buzón está lleno", "casella piena", "casella * piena", "caixa * cheia", "caixa cheia", "postvak * vol",
		"skrzynka * pełna", "przepełnion", "ящик * переполнен", "переполнен", "posta kutusu dolu", "schránka je plná", "schránka plná",
		"brevlådan är full", "postkassen er fuld", "postboksen er full", "容量", "いっぱい", "满", "已滿", "용량",
	}},
	{ReasonTooLarge, []string{
		"message too large", "message too big", "message size exceeds", "size limit", "sizelimit", "too large", "too big",
		"exceeds the maximum", "exceeds maximum", "maximum message size", "exceeds size", "line limit", "nachricht zu gross",
		"nachricht zu groß", "message trop gros", "mensaje demasiado grande", "mensagem muito grande", "messaggio troppo grande",
	}},
	{ReasonSender, []string{
		"sender rejected", "sender address", "sender is not", "sender denied", "sender not", "sender domain", "invalid sender", "bad sender",
		"unknown sender", "from: domain", "domain of sender", "envelope sender", "your email address", "email address is not verified",
		"returned mail * not accepted", "from address", "need fully qualified", "absenderadresse", "expéditeur", "remitente", "mittente",
	}},
	{ReasonDisabled, []string{
		"disabled", "suspended", "deactivated", "de-activated", "is frozen", "account is blocked", "mailbox is blocked", "mailbox is frozen",
		"account blocked", "mailbox locked", "account locked", "is locked", "account expired", "account has expired", "temporarily inactive",
		"not been used", "not logged in", "discontinued", "is inactive", "not active", "mailbox inactive", "account inactive", "over inactive",
		"currently not accepting", "est bloque", "compte * bloqu", "gesperrt", "deaktiviert", "désactiv", "desactivad", "disattivat",
		"zablokowan", "заблокирован", "отключен", "停用", "冻结",
	}},
	{ReasonMoved, []string{
		"has moved", "mailbox moved", "user moved", "no forwarding address", "no longer on server", "update your address book", "new address is", "has been replaced by", "user not local; please try", "has left the company",
	}},
	{ReasonContent, []string{
		"spam", "content rejected", "message rejected * content", "message content", "virus", "malware", "infected", " ube,", " ube ", "junk",
		"phishing", "attachment type", "attachments are", "attachment not", "header error", "duplicate header", "not rfc", "rfc 5322", "rfc5322", "rfc 2822", "8-bit data",
		"improper use", "unacceptable content", "policy reasons", "message filtered", "mail rejete", "prohibited", "unsolicited", "bulk mail",
		"malformed message", "malformed header", "unsafe", "blacklisted url", "inappropriate", "message looks like", "forbidden", "multiple subject", "invalid header",
	}},
	{ReasonRelay, []string{
		"relaying denied", "relay access denied", "relay not permitted", "relaying not", "relay denied", "unable to relay", "not relay",
		"no relaying", "relay not allowed", "relay prohibited", "cannot relay", "not permitted to relay", "not a gateway", "isn't in my list of allowed rcpthosts",
		"not in my list of allowed", "rcpthosts", "we do not relay", "relaying mail", "mail server is not configured",
	}},
	{ReasonNoDomain, []string{
		"host unknown", "unknown host", "domain not found", "no such domain", "domain does not exist", "domain name not found", "unknown domain",
		"unrouteable", "unroutable", "nxdomain", "name or service not known", "bad destination system", "bad destination", "illegal host",
		"invalid domain", "invalid host", "host not found", "no such host", "name server: host", "couldn't find any host", "domain invalid",
		"recipient domain", "host * not found", "no mail server", "no mx", "no valid hosts", "null mx", "nullmx", "indicated no smtp service", "no data record of requested type", "point to non-existent hosts", "does not accept mail",
		"does not accept email", "doesn't accept mail", "not accept any mail", "domain not valid", "malformed or unexpected name server",
		"name service error", "domain * not exist", "domäne", "domaine inconnu", "domaine inexistant", "dominio desconocido", "dominio inexistente",
		"dominio sconosciuto", "domínio", "domein bestaat niet", "домен не", "domena",
	}},
	{ReasonNoMailbox, noMailboxWords},
	{ReasonExpired, []string{
		"expired", "timed out", "timeout", "time out", "failing for a long time", "retry time", "retry limit", "not delivered within", "in the queue too long", "too old",
		"attempts", "after multiple retries", "multiple retries", "giving up after", "delivery time", "unable to contact", "not responding", "not reachable",
		"socket error", "did not accept our requests to connect", "able to establish an smtp connection", "could not connect", "no route",
		"connection refused", "unable to connect", "aborted after", "cannot connect", "could not find a gateway", "zeitüberschreitung", "délai", "agotado",
	}},
	{ReasonNetwork, []string{
		"too many hops", "hop count", "loop", "points to local host", "network", "routing", "dns error", "dns failure", "name server", "name service",
		"connection lost", "connection reset", "lost connection", "connection dropped", "try again * host", "connection",
	}},
	{ReasonSystem, []string{
		"system error", "internal error", "server error", "configuration error", "service unavailable", "service currently unavailable",
		"service not available", "temporarily unavailable", "temporary failure", "temporary error", "try again", "try later", "insufficient disk",
		"insufficient system", "resources temporarily", "disk space", "ldap", "local error", "mailer error", "software error", "i/o error",
		"procmail", "protocol error", "unable to", "multiple retries", "child status", "no space left", "database", "shutting down",
	}},
	{ReasonRefused, []string{
		"policy", "denied", "reject", "refused", "not accept", "not allowed", "not permitted", "restricted", "declined", "filtered",
		"not authorized", "unauthorized", "abgelehnt", "abgewiesen", "refusé", "rechazad", "rifiutat", "recusad", "geweigerd", "odrzucon", "отклонен", "拒",
	}},
}

// wishWords mean that the recipient, or the mailing list, does not want the
// message.
var wishWords = []string{
	"permission to post", "not allowed to post", "recipient preferences", "group you tried to contact", "google groups",
}

// isWish reports whether the recipient exists but does not want the message.
func isWish(text string) bool { return containsAny(text, wishWords) }

// certainWords are those of noMailboxWords that servers use for nothing else.
var certainWords = []string{
	"no such user", "no such recipient", "no such mailbox", "no such account", "no such address", "no such person", "mailbox not found", "user not found",
	"recipient not found", "account not found", "address not found", "invalid recipient", "invalid mailbox", "not a valid recipient", "not a valid mailbox",
	"address does not exist", "user does not exist", "account does not exist", "mailbox does not exist", "recipient does not exist", "user doesn't exist",
	"account that you tried to reach does not exist", "undeliverable: 550 user unknown", "access denied. as(", "address rejected @", "previously bounced address",
}

// noMailboxWords mean that the user does not exist. Full mailboxes, blocked
// senders and similar reasons are checked before them.
var noMailboxWords = []string{
	"user unknown", "unknown user", "unknown recipient", "recipient unknown", "unknown local", "unknown mailbox", "unknown address",
	"unknown e-mail address", "unknown email address", "unknown account", "unknown to",
	"no such user", "no such recipient", "no such mailbox", "no such account", "no such address", "no such person", "no such local user",
	"no such email", "no such name", "no mailbox", "no user", "no recipient", "no account", "no valid recipient", "no local mailbox", "not our customer",
	"user not found", "recipient not found", "recipient * not found", "recipnotfound", "recipientnotfound", "mailbox not found",
	"account not found", "address not found", "user not known", "user not exist", "user doesn't exist", "user does not exist", "not known here",
	"not exist", "nonexistent", "non-existent", "non existent", "doesn't exist", "does not exist", "doesn't have a", "does not have an account",
	"isn't a valid", "invalid recipient", "invalid address", "invalid mailbox", "invalid user", "invalid account", "invalid final delivery userid",
	"recipient invalid", "address invalid", "not a valid", "not valid", "no longer valid", "bad recipient", "bad address", "bad destination mailbox",
	"undeliverable address", "mailbox unavailable", "mailbox not available", "recipient name is not recognized", "not recognized", "not recognised",
	"not listed in", "unable to validate recipient", "user invalid", "inactive email address", "no longer available", "no longer exists",
	"no longer employed", "no longer works", "no longer with", "account closed", "mailbox closed", "account * deleted", "user * deleted", "has been deleted",
	"recipient address rejected. ", "recipient address rejected (", "recipient address rejected [", "recipient rejected", "rejected recipient",
	"542 @ rejected", "cannot find user", "couldn't find user", "can't find user", "user couldn't be found", "user could not be found",
	"couldn't be found", "wasn't found", "was not found", "name not found", "not found by", "no matching", "not a known", "this address no longer",
	"addressee unknown", "unrecognized recipient", "recipient is not", "is not a mailbox", "can't be found", "mailbox does",

	"benutzer unbekannt", "unbekannter benutzer", "empfänger unbekannt", "unbekannter empfänger", "adresse unbekannt", "konto existiert nicht",
	"adresse existiert nicht", "nicht gefunden", "existiert nicht", "utilisateur inconnu", "destinataire inconnu", "adresse inconnue",
	"destinataire invalide", "adresse invalide", "adresse d au moins un destinataire", "n'existe pas", "boite inconnue", "compte inexistant",
	"usuario desconocido", "destinatario desconocido", "usuario no existe", "dirección no encontrada", "cuenta no existe", "no existe",
	"utente sconosciuto", "destinatario sconosciuto", "utente inesistente", "indirizzo inesistente", "casella inesistente", "non esiste",
	"usuário desconhecido", "usuario inexistente", "usuário inexistente", "destinatário desconhecido", "não existe", "não encontrado",
	"onbekende gebruiker", "gebruiker onbekend", "ontvanger onbekend", "bestaat niet", "nieznany użytkownik", "nie istnieje", "nie znaleziono",
	"okänd mottagare", "okänd användare", "finns inte", "ukendt bruger", "findes ikke", "ukjent bruker", "finnes ikke", "tuntematon",
	"neznámý uživatel", "uživatel neexistuje", "kullanıcı bulunamadı", "bulunamadı", "пользователь не найден", "не существует", "неизвестный пользователь",
	"не найден", "користувача не", "見つからない", "見つかりません", "存在しません", "不存在", "无此用户", "查无此", "존재하지 않", "tidak ditemukan", "không tồn tại",
}
