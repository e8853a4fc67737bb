package message

// wordKind is what a word says about the numbers near it.
type wordKind uint8

const (
	noWord     wordKind = iota
	codeNoun            // "code", "OTP": the number is one
	weakNoun            // "PIN", "passcode": it is one unless it opens something else
	qualifier           // "verification", "login": what the code is for
	useVerb             // "enter", "use": a number to be typed
	otherThing          // "order", "phone": the number names something else
	softThing           // "account": likewise, if it directly follows
	elsewhere           // "meeting", "gift card": weak nouns open something else
)

// codeWord is a word found in a line.
type codeWord struct {
	start, end int
	kind       wordKind
}

// codeWords are the words by kind, in lower case. One that ends in "*" stands
// for all that begin with it.
var codeWords = map[wordKind]string{
	codeNoun: `code|codes|otp|otac|tan|mtan|kod|kods|kode|kodu|kodun|kodunu|kodunuz|kodunuzu|koda|kodem|kód|kódot|kódja|kódu|kódem|koodi|koodisi|koden|codul|código|codigo|codice|codici|cod
		|digits below|number below|numbers below|digits above|one-time password|one time password|one-time-password|einmalpasswort|einmalkennwort|mot de passe à usage unique
		|contraseña de un solo uso|hasło|jelszó|κωδικός|κωδικοσ|κωδικό|κωδικο|код|кода|коду|кодом|пароль|одноразовый пароль
		|验证码|驗證碼|校验码|動態密碼|动态密码|动态码|驗證號碼|确认码|確認碼|安全码|一次性密码|口令|認證碼|激活码
		|認証番号|認証コード|確認コード|確認番号|セキュリティコード|ワンタイムパスワード|ログインコード|コード|暗証番号
		|인증번호|인증코드|인증 번호|인증 코드|확인 코드|확인코드|보안코드|보안 코드|일회용 비밀번호|코드
		|รหัส|رمز|كود|الكود|رمز عبور|رقم التحقق|کد|קוד|קוד אימות|कोड|ओटीपी|mã xác|mã otp|mã`,
	weakNoun: `pin|pins|passcode|pass code|password|passwort|kennwort|contraseña|senha|passphrase|lösenord|wachtwoord|mot de passe|暗証|비밀번호`,
	qualifier: `verif*|vérif*|confirm*|authent*|authoriz*|authoris*|autoriz*|security|secure|login|log-in|log in|logging in|sign-in|sign in|signing in|signin|sign up|signup|sign-up
		|one-time|one time|temporary|two-factor|2-step|two-step|2fa|mfa|access|activation|activate|launch|magic|passwordless|identity
		|bestätig*|sicherheit*|anmeld*|einmal*|aktivierung*|zugang*|verifizier*|connexion|sécurité|usage unique|identifi*|verificación|seguridad|acceso|inicio de sesión|un solo uso
		|verifica|sicurezza|accesso|autenticazione|conferma|beveiliging*|inlog*|eenmalig*|bevestig*|weryfik*|potwierdz*|logowan*|jednorazow*|uwierzyteln*
		|verificação|segurança|acesso|confirmação|engång*|bekräft*|inlogg*|säkerhet*|verifiering*|bekreft*|engangs*|bekræft*|vahvist*|doğrulama|giriş|ověř*|potvr*
		|подтвержд*|провер*|входа|вход|безопасност*|одноразов*|підтвердж*|перевір*|επαλήθευσης|επιβεβαίωσης|χρήσης|verifikasi|masuk|xác minh|xác thực
		|验证|驗證|登录|登入|認証|確認|ログイン|인증|로그인|التحقق|التأكيد|الدخول|تأیید|ورود|אימות|כניסה|सत्यापन|ยืนยัน`,
	useVerb: `enter|entering|use|using|type|typing|copy|paste|input|provide|submit|key in|insert|eingeben|geben sie|gib|verwende*|nutze*|benutze*|saisir|saisissez|entrez|utilisez|tapez
		|introduce|introduzca|ingresa|ingrese|escribe|usa|use o|utiliza|inserisci|digita|digite|insira|informe|voer|gebruik|wpisz|użyj|podaj|ange|använd|skriv|indtast|brug|syötä|girin
		|введите|используйте|введіть|masukkan|gunakan|nhập|输入|輸入|填写|入力|입력|أدخل|वर्ज करें|กรอก|below|following|folgende*|suivant*|siguiente|seguente|poniższ*|nedan`,
	otherThing: `order|orders|invoice|invoices|receipt|tracking|ticket|tickets|case|reference|referenz|ref|ref.|refno|booking|reservation|flight|phone|telephone|tel|tel.|call|fax|mobile|hotline
		|zip|suite|ste|floor|room|box|ending|ends in|ends with|iban|bic|vat|tax|ein|id|ids|version|build|section|page|chapter|issue|volume|port|pid|since|total|amount|balance|price|sum|due|paid
		|usd|eur|gbp|inr|chf|pln|sek|nok|dkk|czk|jpy|cny|rmb|aud|cad|brl|rs|rs.|kr|zł|руб|km|kg|request|event|transfer|transaction|serial|model|sku|item|article|product|job|run|commit|pr|bug
		|error|ext|ext.|extension|seat|gate|row|station|recall|vin|game|agent|draw|requisition|application|registration|policy|contract|parcel|package|shipment|awb|license|licence|subscription
		|voucher|coupon|promo|discount|points|postcode|zipcode|barcode|qr|copyright|©|(c)|unicode|member|customer|client|user|merchant|incident|survey|branch|dealer
		|promo code|discount code|coupon code|voucher code|gift code|zip code|post code|postal code|area code|country code|error code|status code|exit code|response code|source code|qr code|bar code
		|dress code|code of|code sample|code samples|code review|code base|dealer code|product code|item code|style code|tax code|tracking code|reference code|booking code|booking confirmation code
		|confirmation number|reservation code|referral code|swift code|sort code|branch code|backup code|backup codes|recovery code|recovery codes|backup-code*|license code|licence code|license key|product key
		|bestell*|auftrag*|rechnung*|kunden*|sendung*|vorgang*|aktenzeichen|konto*|telefon*|plz|postleitzahl|steuer*|gutschein*|rabatt*|aktionscode*|postfach|über|betrag|vertrag*|kartennummer|hrb
		|commande|facture|colis|téléphone|tél|montant|client n|dossier|code postal|code promo|code de réduction|siret|pedido|factura|teléfono|importe|cliente|referencia|código postal|código promocional|código de descuento
		|ordine|fattura|telefono|importo|spedizione|codice fiscale|codice postale|codice sconto|cap|bestelling|factuur|klantnummer|bedrag|telefoon|zamówien*|faktur*|kwot*|przesył*|rach|rachun*|kod pocztowy|kod rabatowy
		|fatura|nota|telefone|valor|cep|cpf|cnpj|código de rastreio|cupom|faktura|beställning*|ordernummer|belopp|kundnummer|ocr|postnummer|rabattkod*|rabattkode*|lasku|sipariş|fatura no
		|заказ*|счет*|сумма|суммы|телефон*|карта|карты|промокод*|индекс|номер заказа|замовлення|рахунок|сума|ποσό|παραγγελία|τηλέφωνο|invoice/|inv
		|订单|訂單|单号|單號|运单|尾号|末四位|金额|人民币|电话|電話|客服|邮编|优惠码|折扣码|会员号|注文番号|注文|電話番号|会員番号|お問い合わせ番号|問い合わせ番号|金額|郵便番号|伝票|クーポンコード|주문|주문번호|고객센터|전화|송장|우편번호
		|หมายเลขคำสั่ง|โทร|จำนวน|المبلغ|مبلغ|زمان|הזמנה|טלפון|राशि|pesanan|telepon`,
	softThing: `account|acct|card|device|email|e-mail|konto|compte|cuenta|conto|conta|kort|karte|carte|tarjeta|number|nr|nr.|no.|num|numéro|número|numero|nummer`,
	elsewhere: `meeting*|webinar|conference|gift card|gift-card|giftcard|gift|wi-fi|wifi|dial|dial-in|zip file|pdf|besprechung|réunion|reunión|riunione|vergadering|spotkani*|会议|會議|ミーティング|회의`,
}

// unitWords follow a number that is an amount.
const unitWords = `minute*|min|mins|hour*|hrs|hr|second*|sec|secs|day*|week*|month*|year*|times|attempt*|digit*|digits|character*|request*|points|item*|people|users|views|articles|ms|mb|gb|kb|km|eur|usd|inr|gbp|pln
		|sek|nok|dkk|chf|kr|zł|stunde*|tage*|sekunden|uhr|heure*|jour*|seconde*|hora*|día*|segundo*|ore|giorni|secondi|uur|dagen|seconden|godzin*|dni|sekund*|timm*|dag*|dias|минут*|час*|дн*|секунд*|руб*
		|хвилин*|分钟|分鐘|分|小时|小時|秒|年|月|日|时|時|元|円|원|분|초|년|월|일|시|นาที|دقائق|دقيقة|דקות|मिनट|menit|jam|phút|%`
