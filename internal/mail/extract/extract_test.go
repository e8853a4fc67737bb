package extract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

func TestExtractCodes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, subject, text, want string }{
		// Where the code stands.
		{"after a colon", "Welcome", "Your verification code: 735120", "735120"},
		{"in a sentence", "Welcome", "Please use 735120 as your login code, it is valid for 10 minutes.", "735120"},
		{"at the start of a sentence", "Hi", "735120 is your Acme security code. Do not share it.", "735120"},
		{"on a line of its own", "Sign in", "Enter this code to sign in:\n\n  735120  \n\nIt expires in 15 minutes.", "735120"},
		{"two lines below", "Sign in", "Your one-time passcode is below.\n\nDo not share it.\n\n7351\n", "7351"},
		{"above the text that announces it", "Acme", "735120\n\nis your confirmation code.", "735120"},
		{"in the subject alone", "735120 is your Acme code", "Hello,\n\nsomeone wants to sign in.", "735120"},
		{"in subject and text", "Your code is 735120", "Use 735120 to continue.", "735120"},
		{"after a verb", "Confirm your device", "Type 735120 to verify this device.", "735120"},
		{"to an account", "Sign in", "Use this code to sign in to your account: 735120", "735120"},
		{"in a table", "Sign in", "Account\tann@example.com\nCode\t735120\nTime\t09:14", "735120"},
		// How it is written.
		{"four digits", "PIN", "Your login PIN is 4821.", "4821"},
		{"eight digits", "Code", "Your code is 48213377.", "48213377"},
		{"in groups", "Code", "Your code is 735 120.", "735120"},
		{"in groups with a hyphen", "Code", "Your code is 735-120.", "735120"},
		{"in four groups of two", "Code", "Your code is 73 51 20 44", "73512044"},
		{"single digits", "Code", "Your code: 7 3 5 1 2 0", "735120"},
		{"in brackets", "Code", "Your code is [735120].", "735120"},
		{"in bold marks", "Code", "Your code is **735120**.", "735120"},
		{"with a prefix that is printed", "Code", "G-735120 is your Google verification code.", "735120"},
		{"letters and digits", "Code", "Your verification code is A1B2C3.", "A1B2C3"},
		{"letters and digits in groups", "Code", "Enter the code K7QX-93MB in the app.", "K7QX-93MB"},
		{"letters in groups", "Code", "Your confirmation code is XKC-QWD", "XKC-QWD"},
		{"leading zeros", "Code", "Your code is 000482.", "000482"},
		{"full-width digits", "コード", "認証コード：７３５１２０", "735120"},
		{"Arabic digits", "رمز", "رمز التحقق: ٧٣٥١٢٠", "735120"},
		// Languages.
		{"German", "Anmeldung", "Ihr Bestätigungscode lautet 735120.", "735120"},
		{"German, a compound", "Anmeldung", "Ihr Sicherheitscode:\n735120", "735120"},
		{"French", "Connexion", "Votre code de vérification est le 735120.", "735120"},
		{"Spanish", "Acceso", "Tu código de seguridad es 735120. No lo compartas.", "735120"},
		{"Italian", "Accesso", "Il codice di verifica è: 735120", "735120"},
		{"Dutch", "Inloggen", "Uw verificatiecode is 735120.", "735120"},
		{"Portuguese", "Acesso", "Seu código de acesso: 735120", "735120"},
		{"Polish", "Logowanie", "Twój kod weryfikacyjny to 735120.", "735120"},
		{"Swedish", "Inloggning", "Din verifieringskod är 735120.", "735120"},
		{"Danish", "Log ind", "Din engangskode er 735120", "735120"},
		{"Turkish", "Giriş", "Doğrulama kodunuz: 735120", "735120"},
		{"Czech", "Přihlášení", "Váš ověřovací kód je 735120.", "735120"},
		{"Russian", "Вход", "735120 — ваш код подтверждения.", "735120"},
		{"Ukrainian", "Вхід", "Ваш код: 735120", "735120"},
		{"Greek", "Είσοδος", "Ο κωδικός επαλήθευσης είναι 735120", "735120"},
		{"Chinese", "登录", "您的验证码是735120，5分钟内有效。", "735120"},
		{"Traditional Chinese", "登入", "您的驗證碼為 735120。", "735120"},
		{"Japanese", "ログイン", "認証コード「735120」を入力してください。", "735120"},
		{"Korean", "로그인", "인증번호는 735120 입니다.", "735120"},
		{"Hindi", "लॉगिन", "आपका सत्यापन कोड 735120 है।", "735120"},
		{"Hebrew", "כניסה", "קוד האימות שלך: 735120", "735120"},
		// The text around it.
		{"an order number", "Code", "Order 4821337: your code is 735120", "735120"},
		{"a telephone number", "Code", "Your code is 735120. Questions? Call 555-0142 or 1 800 555 0199.", "735120"},
		{"dates and times", "Code", "On 2026-11-13 at 09:14:22 you asked for a code: 735120. It ends 13.11.2026.", "735120"},
		{"a price", "Code", "Code 735120 approves your payment of $4,821.33 to card 4421.", "735120"},
		{"an older mail", "Re: Code", "Your new code is 735120.\n\nOn Thu, Acme wrote:\n> Your code is 111222.", "735120"},
		{"an older mail below its header", "Re: Code", "Your new code is 735120.\n\nFrom: Acme\nSent: Friday\nTo: Ann\nSubject: Code\n\nYour code is 111222.", "735120"},
		{"a web address", "Code", "See https://example.com/code/482133 or use the code 735120.", "735120"},
		{"the same code twice", "Code", "Your code: 735120\n\nAgain: 735 120", "735120"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for kind, got := range map[string]mail.Extraction{
				"text": CodesAndLinks(tt.subject, tt.text, ""),
				"HTML": CodesAndLinks(tt.subject, "", "<div>"+strings.ReplaceAll(tt.text, "\n", "<br>")+"</div>"),
			} {
				if kind == "HTML" && strings.Contains(tt.text, "\n>") {
					continue // escaped, it would only look like a quotation
				}
				if got.OTP == nil || *got.OTP != tt.want || len(got.Codes) != 1 {
					t.Errorf("as %s: got %s", kind, show(got))
				}
			}
		})
	}
}

func TestExtractNoCode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, subject, text string }{
		{"nothing", "", ""},
		{"no number", "Your code", "The code is in the app."},
		{"a year", "Code of conduct 2026", "The code of conduct 2026 applies."},
		{"an order", "Order 482133", "Your order number is 482133. Tracking: 1Z999AA10123456784"},
		{"an invoice", "Invoice 2026-4471", "Invoice 482133 over EUR 189.90 is due on 13.11.2026."},
		{"a ticket", "Ticket 482133", "Your ticket 482133 was closed. Reference: 7712044"},
		{"a telephone number", "Call", "Call us: +1 415 555 0132 or 0871234567"},
		{"a postal code", "Address", "Our zip code is 94107. Postal code 10117 Berlin."},
		{"a promotion", "20% off", "Use code SAVE20 at checkout, or the promo code 482133."},
		{"a discount in German", "Rabatt", "Ihr Gutscheincode: 482133"},
		{"an error code", "Error", "The server responded with status code 50013 and error code 482133."},
		{"an amount of time", "Code", "Your code expires in 6000 seconds."},
		{"a code that is over", "Your code has expired", "The code we sent at 09:14 has expired."},
		{"backup codes", "New backup codes", "You made 10 new backup codes on 13 Nov 2026."},
		{"a meeting", "Zoom meeting", "Join Zoom Meeting\nMeeting ID: 823 4567 8901\nPasscode: 482133"},
		{"a gift card", "A gift card for you", "Card number 6001 2345 6789 0123, PIN 4829"},
		{"an account number", "Statement", "Statement of the account 48213377, card ending in 4421."},
		{"a version", "Release", "Version 4.8.2133 and build 482133 are out."},
		{"an amount", "Payment", "Your security deposit of 482133 EUR was paid."},
		{"a scientific text", "Paper", "We verified 482133 samples; the source code is at line 4821."},
		{"a number without a word", "Numbers", "482133\n\n771204"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := CodesAndLinks(tt.subject, tt.text, ""); got.OTP != nil || len(got.Codes) != 0 {
				t.Errorf("got %s", show(got))
			}
		})
	}
}

func TestExtractOfTwoCodesIsUnsure(t *testing.T) {
	t.Parallel()
	got := CodesAndLinks("Your codes", "Your login code is 735120.\nYour login code is 482133.", "")
	if got.OTP != nil {
		t.Errorf("got %q for one of two", *got.OTP)
	}
	slices.Sort(got.Codes)
	if diff := cmp.Diff([]string{"482133", "735120"}, got.Codes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestExtractReadsWhatIsSeen(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, html, want string }{
		{"digits in boxes", "<p>Your code:</p><table><tr><td>7</td><td>3</td><td>5</td><td>1</td><td>2</td><td>0</td></tr></table>", "735120"},
		{"digits one below the other", "<p>Your code:</p><div>7</div><div>3</div><div>5</div><div>1</div><div>2</div><div>0</div>", "735120"},
		{"digits in spans", "<p>Your code:</p><p><span>7</span><span>3</span><span>5</span><span>1</span></p>", "7351"},
		{"zero-width spaces", "<p>Your code: 7&#8203;3&#8203;5&#8203;1</p>", "7351"},
		{"a hidden decoy", "<div style='display:none'>Your code: 111222</div><p>Your code: 735120</p>", "735120"},
		{"a style sheet", "<style>.code-123456{color:#735120}</style><p>Your code: 735120</p>", "735120"},
		{"a script", "<script>var code = 111222</script><p>Your code: 735120</p>", "735120"},
		{"a link", "<p>Your code: <a href='https://example.com/482133'>735120</a></p>", "735120"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := CodesAndLinks("Sign in", "", tt.html); got.OTP == nil || *got.OTP != tt.want || len(got.Codes) != 1 {
				t.Errorf("got %s", show(got))
			}
		})
	}
}

func TestExtractActionLink(t *testing.T) {
	t.Parallel()
	const target = "https://example.com/u/aB3dE5fG7hJ9kL1mN3"
	tests := []struct{ name, subject, text, html, want string }{
		{"a button", "Welcome", "", `<p>Hi</p><a href="` + target + `">Verify your email</a><a href="https://example.com/">Home</a>`, target},
		{"a picture of a button", "Welcome", "", `<a href="` + target + `"><img alt="Confirm account"></a>`, target},
		{"below other links", "Welcome", "", `<a href="https://example.com/blog/post-1">Read our blog</a><a href="` + target + `">Activate account</a>`, target},
		{"a link that says here", "Sign in", "", `To sign in, click <a href="` + target + `">here</a>.`, target},
		{"a text", "Confirm your address", "Please confirm your address:\n\n" + target + "\n\nThank you.", "", target},
		{"a text in one line", "Hello", "Click " + target + " to reset your password.", "", target},
		{"an address that says it", "Verify your email", "https://example.com/verify?token=a1B2c3D4", "", "https://example.com/verify?token=a1B2c3D4"},
		{"a text that goes on", "Hello", "Open " + target + " within an hour to confirm your address.", "", target},
		{"entities", "Welcome", "", `<a href="https://example.com/verify?a=1&amp;t=x">Verify</a>`, "https://example.com/verify?a=1&t=x"},
		{"a line break in the address", "Welcome", "", "<a href=\"https://example.com/\nverify\">Verify</a>", "https://example.com/verify"},
		{"German", "Willkommen", "", `<a href="` + target + `">E-Mail-Adresse bestätigen</a>`, target},
		{"French", "Bienvenue", "", `<a href="` + target + `">Confirmer mon adresse</a>`, target},
		{"Spanish", "Hola", "", `<a href="` + target + `">Verificar correo</a>`, target},
		{"Italian", "Ciao", "", `<a href="` + target + `">Conferma email</a>`, target},
		{"Dutch", "Hallo", "", `<a href="` + target + `">Bevestig je e-mail</a>`, target},
		{"Portuguese", "Olá", "", `<a href="` + target + `">Ativar conta</a>`, target},
		{"Polish", "Witaj", "", `<a href="` + target + `">Potwierdź adres</a>`, target},
		{"Swedish", "Hej", "", `<a href="` + target + `">Bekräfta e-post</a>`, target},
		{"Russian", "Привет", "", `<a href="` + target + `">Подтвердить</a>`, target},
		{"Japanese", "登録", "", `<a href="` + target + `">メールアドレスを確認</a>`, target},
		{"none in a newsletter", "News", "", `<a href="https://example.com/news/1">Read more</a><a href="https://example.com/shop">Shop</a>`, ""},
		{"none in a notice", "Your password was changed", "", `<a href="https://example.com/activity">Check activity</a>`, ""},
		{"none for a login page", "Your code has expired", "Ask for a new one at https://example.com/login.", "", ""},
		{"none at the foot", "Hello", "", `<a href="https://example.com/privacy">Privacy</a><a href="https://x.com/example">Follow us</a>`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := CodesAndLinks(tt.subject, tt.text, tt.html)
			switch {
			case tt.want == "":
				if got.ActionLink != nil {
					t.Errorf("got %s", show(got))
				}
			case got.ActionLink == nil || *got.ActionLink != tt.want || got.Links[0] != tt.want:
				t.Errorf("got %s", show(got))
			}
		})
	}
}

func TestExtractLinks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, html string
		want             []string
	}{
		{"punctuation around it", "See https://a.example/x, (https://b.example/y) or <https://c.example/z>.", "", []string{"https://a.example/x", "https://b.example/y", "https://c.example/z"}},
		{"balanced brackets stay", "See https://a.example/x(y) and (https://a.example/z(1)).", "", []string{"https://a.example/x(y)", "https://a.example/z(1)"}},
		{"a sentence in Chinese", "请点击https://a.example/x。谢谢", "", []string{"https://a.example/x"}},
		{"a non-ASCII host", "https://bücher.example/x", "", []string{"https://bücher.example/x"}},
		{"capitals in the scheme", "HTTPS://a.example/X", "", []string{"HTTPS://a.example/X"}},
		{"each once", "https://a.example/x https://a.example/x", `<a href="https://a.example/x">x</a>`, []string{"https://a.example/x"}},
		{"other schemes", "ftp://a.example/x javascript:alert(1) mailto:a@b.c", `<a href="mailto:a@b.c">x</a><a href="javascript:x()">y</a><a href="/relative">z</a><a href="slack://x">s</a>`, []string{}},
		{"nothing but a scheme", "http:// https://. http://", "", []string{}},
		{"unsubscribe and the like", "Unsubscribe: https://a.example/u/1\nView online: https://a.example/v/1", `<a href="https://a.example/x/unsubscribe">here</a><a href="https://a.example/p">Manage preferences</a><a href="https://a.example/w">View in browser</a>`, []string{}},
		{"unsubscribe in other languages", "", `<a href="https://a.example/1">Abmelden</a><a href="https://a.example/2">Se désabonner</a><a href="https://a.example/3">Darse de baja</a><a href="https://a.example/4">退订</a><a href="https://a.example/5">Отписаться</a>`, []string{}},
		{"tracking pictures", "", `<img src="https://a.example/pixel.gif"><a href="https://a.example/x">Report</a>`, []string{"https://a.example/x"}},
		{"hidden links", "", `<div style="display:none"><a href="https://a.example/x">Report</a></div>`, []string{}},
		{"a path in Japanese", "https://a.example/検索?q=1 https://a.example/記事", "", []string{"https://a.example/%E6%A4%9C%E7%B4%A2?q=1", "https://a.example/%E8%A8%98%E4%BA%8B"}},
		{"an emoji in a path", "Offen: https://a.example/🎉/x?t=👍🏽 und https://a.example/party🎉time/1.", "", []string{"https://a.example/%F0%9F%8E%89/x?t=%F0%9F%91%8D%F0%9F%8F%BD", "https://a.example/party%F0%9F%8E%89time/1"}},
		{"an emoji with a joiner", "https://a.example/👩‍💻/❤️", "", []string{"https://a.example/%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB/%E2%9D%A4%EF%B8%8F"}},
		{"an emoji behind it", "https://a.example/x🎉 and https://a.example/y 🎉", "", []string{"https://a.example/x", "https://a.example/y"}},
		{"other letters in a path", "https://a.example/bestätigen?näme=ü#ß", `<a href="https://a.example/подтвердить/ёж">x</a>`, []string{"https://a.example/best%C3%A4tigen?n%C3%A4me=%C3%BC#%C3%9F", "https://a.example/%D0%BF%D0%BE%D0%B4%D1%82%D0%B2%D0%B5%D1%80%D0%B4%D0%B8%D1%82%D1%8C/%D1%91%D0%B6"}},
		{"Chinese text behind it", "打开https://a.example/x继续，或https://b.example/继续。", "", []string{"https://a.example/x", "https://b.example/"}},
		{"a host in Japanese and one with an emoji", "https://例え.example/x https://i❤.example/y", "", []string{"https://例え.example/x", "https://i❤.example/y"}},
		{"two lines in angle brackets", "Open <https://a.example/confirm?user=12&t=9f8e\n7d6c> today, or <https://b.example/x\n  yz\n12>.", "", []string{"https://a.example/confirm?user=12&t=9f8e7d6c", "https://b.example/xyz12"}},
		{"text in angle brackets", "<https://a.example/x\nis the page> and <https://b.example/y\n\nEnd", "", []string{"https://a.example/x", "https://b.example/y"}},
		{"cut in the text, whole on the page", "Report:\nhttps://a.example/r/0b1c2d3e\n4f506172. And https://a.example/r/77\n81 too.", `<a href="https://a.example/r/0b1c2d3e4f506172">Report</a>`, []string{"https://a.example/r/0b1c2d3e4f506172", "https://a.example/r/77"}},
		{"cut by an ellipsis", "https://a.example/r/0b1c2d3e… or https://a.example/r", `<a href="https://a.example/r/0b1c2d3e4f506172">Report</a>`, []string{"https://a.example/r/0b1c2d3e4f506172", "https://a.example/r"}},
		{"an address that is far too long", "https://a.example/" + strings.Repeat("x", plaintext.MaxURL), "", []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := CodesAndLinks("Hello", tt.text, tt.html).Links
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestExtractLimitsLinks(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("https://a.example/x ", 3) + "https://a.example/y https://a.example/z"
	if got, _ := trained().extract("", text, "", mail.Limits{Links: 2}); len(got.Links) > 2 {
		t.Errorf("got %q", got.Links)
	}
}

func TestExtractedAsJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(CodesAndLinks("Hello", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"otp":null,"codes":[],"links":[],"action_link":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func show(x mail.Extraction) string {
	data, _ := json.Marshal(x) //nolint:errchkjson // strings only
	return string(data)
}
