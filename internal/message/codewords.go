package message

// wordKind is what a word says about the numbers near it.
type wordKind uint8

const (
	noWord     wordKind = iota
	codeNoun            // "code", "OTP": the number is one
	weakNoun            // "PIN", "passcode": it is one unless it opens something else
	openNoun            // "confirmation code": one as good as "code", with the limit of a weak one
	qualifier           // "verification", "login": what the code is for
	useVerb             // "enter", "use": a number to be typed
	otherThing          // "order", "phone": the number names something else
	softThing           // "account": likewise, if it directly follows
	elsewhere           // "meeting", "gift card": weak nouns open something else
	ofCode              // "dress", "postal": beside the noun it makes a code of another kind
	ofShop              // "promo", "discount": likewise, and it sells something wherever it stands
)

// codeWord is a word found in a line.
type codeWord struct {
	start, end int
	kind       wordKind
	of         bool // beside a code it makes one of another kind
	opens      bool // it is of what has a PIN or a number of its own
}

// codeWords are the words by kind, in lower case. One that ends in "*" stands
// for all that begin with it.
var codeWords = map[wordKind]string{
	codeNoun: `code|codes|otp|otac|tan|mtan|kod|kods|kode|kodu|kodunuz*|kodun|kodunu|kodiniz*|koda|kodem|kod nr|kód|kódot|kódja|kódu|kódem|koodi|koodisi|koden|codul|código|codigo|codice|codici|cod
		|verification number|authentication number|security number|enter this number|enter the number|enter these digits|enter the digits|type this number|type the number|following digits|digits below|number below|numbers below|digits above|one-time password|one time password|one-time-password|einmalpasswort|einmalkennwort|mot de passe à usage unique
		|contraseña de un solo uso|jelszó|κωδικός|κωδικοσ|κωδικό|κωδικο|код|кода|коду|кодом|пароль|одноразовый пароль
		|验证码|驗證碼|校验码|動態密碼|动态密码|动态码|驗證號碼|确认码|確認碼|安全码|一次性密码|口令|認證碼|激活码
		|認証番号|認証コード|確認コード|確認番号|セキュリティコード|ワンタイムパスワード|ログインコード|コード|暗証番号
		|인증번호|인증코드|인증 번호|인증 코드|확인 코드|확인코드|보안코드|보안 코드|일회용 비밀번호|코드
		|รหัส|رمز|كود|الكود|رمز عبور|رقم التحقق|کد|קוד|קוד אימות|कोड|ओटीपी|mã xác|mã otp|mã
		|hasło|kodu*|kodla|kody|kódy|kodów|ziffernfolge|zahlenfolge|zahlencode|zifferncode|engangsadgangskode*|engångslösenord*|engangspassord*|einmalpasswort*|clave dinámica|clave de un solo uso|clave de acceso|clave de seguridad|číselný kód|検証コード|認証キー|パスコード|検証番号|識別碼|随机码|随机密码|短信密码|驗證密碼`,
	weakNoun: `token|clave|check number|heslo|lozinka|şifre*|parola*|salasana|kata sandi|sandi|mật khẩu|كلمة المرور|كلمة مرور|كلمة السر|पासवर्ड|पिन|密码|密碼|パスワード|รหัสผ่าน|סיסמה|סיסמא|adgangskode*
		|lösenord*|hasła|haseł|pin-code|pincode|pinkod*|pin kodu|pin code|code pin|kód pin|pin kód|pin-koodi|пин-код|пін-код|pin|pins|passcode|pass code|password|passwort|kennwort|contraseña|senha|passphrase|lösenord|wachtwoord|mot de passe|暗証|비밀번호`,
	openNoun: `confirmation code|confirmation codes|authorization code|authorisation code|approval code|auth code|code de confirmation|código de confirmación|código de confirmação|codice di conferma|bestätigungscode|bevestigingscode`,
	qualifier: `pairing|pair|aktywac*|iniciar sesión|inicia sesión|iniciar la sesión|iniciar sessão|iniciar a sessão|log ind|logge ind|logg inn|logge inn|innlogg*|logga in|zalog*|přihlaš*|bejelentkez*|belép*|autentific*|conectare|conectați|kirjaut*|tunnist*|einloggen|anmelden|войти|войдите|увійти|увійдіть|σύνδεση*|είσοδο*|התחבר*|เข้าสู่ระบบ
		|verif*|vérif*|confirm*|authent*|authoriz*|authoris*|autoriz*|security|secure|login|log-in|log in|logging in|sign-in|sign in|signing in|signin|sign up|signup|sign-up
		|one-time|one time|temporary|two-factor|2-step|two-step|2fa|mfa|access|activation|activate|launch|magic|passwordless|identity
		|einlogg*|freischalt*|registrier*|vorläufig*|temporär*|provisoire|temporaire|accès|accéder|connecter|validez|valider|validation|entrar|temporal|autorizar|un solo uso|entrar|dinámica|monouso|accedere|autorizzare|temporanea|temporaneo|login|tijdelijk*|tymczasow*|autoryzac*|tillfällig*|midlertidig*|engang*|jednoráz*|přihlaš*|přihlás*|bezpečnost*|autorizač*|aktivač*|tek kullanımlık|güvenlik|geçici|onay|aktivasyon|kimlik
		|временн*|безопасн*|авториз*|входу|вхід|активац*|одноразовий|безпеки|тимчасов*|sekali pakai|keamanan|konfirmasi|otentikasi|akses|đăng nhập|một lần|bảo mật|kích hoạt|لمرة واحدة|تسجيل الدخول|المؤقت|एक बार|लॉगिन|सुरक्षा|पुष्टि|激活|注册|安全|动态|動態|一次性|身份|ワンタイム|検証|本人確認|セキュリティ|일회용|보안|본인|접속|ชั่วคราว
		|bestätig*|sicherheit*|anmeld*|einmal*|aktivierung*|zugang*|verifizier*|connexion|sécurité|usage unique|identifi*|verificación|seguridad|acceso|inicio de sesión|un solo uso
		|verifica|sicurezza|accesso|autenticazione|conferma|beveiliging*|inlog*|eenmalig*|bevestig*|weryfik*|potwierdz*|logowan*|jednorazow*|uwierzyteln*
		|verificação|segurança|acesso|confirmação|engång*|bekräft*|inlogg*|säkerhet*|verifiering*|bekreft*|engangs*|bekræft*|vahvist*|doğrulama|giriş|ověř*|potvr*
		|подтвержд*|провер*|входа|вход|безопасност*|одноразов*|підтвердж*|перевір*|επαλήθευσης|επιβεβαίωσης|χρήσης|verifikasi|masuk|xác minh|xác thực
		|验证|驗證|登录|登入|認証|確認|ログイン|인증|로그인|التحقق|التأكيد|الدخول|تأیید|ورود|אימות|כניסה|सत्यापन|ยืนยัน`,
	useVerb: `enter|entering|use|using|type|typing|copy|paste|input|provide|submit|key in|insert|eingeben|geben sie|gib|verwende*|nutze*|benutze*|saisir|saisissez|entrez|utilisez|tapez
		|introduce|introduzca|ingresa|ingrese|escribe|usa|use o|utiliza|inserisci|digita|digite|insira|informe|voer|gebruik|wpisz|użyj|podaj|ange|använd|skriv|skriv in|skriv inn|tast inn|tast ind|fyll i|indtast|brug|syötä|girin
		|введите|используйте|введіть|masukkan|gunakan|nhập|输入|輸入|填写|入力|입력|أدخل|वर्ज करें|กรอก|below|following|folgende*|suivant*|siguiente|seguente|poniższ*|nedan`,
	otherThing: `encode|decode|opcode|eircode|geocode|timecode|xcode|leetcode|vscode|order|orders|invoice|invoices|receipt|tracking|ticket|tickets|case|reference|ref|ref.|refno|booking|reservation|flight|telephone|tel|tel.|fax|hotline
		|suite|ste|floor|room|box|ending|ends in|ends with|iban|bic|vat|tax|ein|id|ids|version|build|chapter|port|pid|since|total|amount|balance|price|sum|due|paid
		|usd|eur|gbp|inr|chf|pln|sek|nok|dkk|czk|jpy|cny|rmb|aud|cad|brl|rs|rs.|kr|zł|kč|грн|руб|km|kg|transfer|transaction|serial|sku|commit|pr|bug|error
		|ext|ext.|extension|seat|gate|row|station|recall|vin|agent|draw|requisition|policy|contract|parcel|package|shipment|awb|subscription|points|copyright|©|(c)|unicode
		|member|customer|client|user|merchant|incident|survey|branch|dealer|code of|lines of code|to code|write code|writing code|booking confirmation code|order confirmation code|reservation confirmation code|confirmation number|backup code|backup codes|recovery code|recovery codes|backup-code*|license key|product key|licence key
		|bestell*|auftrag*|rechnung*|kunden*|sendung*|vorgang*|aktenzeichen|konto*|telefon*|plz|postleitzahl|steuer*|postfach|über|betrag|vertrag*|kartennummer|hrb|referenz|filiale|endet auf|endend auf
		|commande|facture|colis|téléphone|tél|montant|client n|dossier|siret|se terminant par|finissant par|pedido|factura|teléfono|importe|monto|cliente|referencia|seguimiento|localizador|terminada en|terminado en|que termina en|nif
		|ordine|fattura|telefono|importo|spedizione|cap|che termina con|partita iva|bestelling|factuur|klantnummer|bedrag|telefoon|eindigend op|zamówien*|faktur*|kwot*|przesył*|rach|rachun*|kończąc*|nip
		|fatura|nota|telefone|valor|cep|cpf|cnpj|nif|encomenda|rastreio|com final|terminado em|faktura|beställning*|ordernummer|belopp|kundnummer|ocr|postnummer|som slutar på|der ender på|ordre*|beløb*|pakke*|cvr
		|lasku|sipariş*|fatura no|tutar*|ile biten|kargo|vergi no|objednáv*|faktur*|částk*|zásilk*|variabilní symbol|ičo|psč|končící
		|заказ*|счет*|счёт*|сумма|суммы|телефон*|карта|карты|карте|индекс|номер заказа|трек-номер|инн|кпп|обращение|замовлен*|рахун*|сума|суму|картка|ттн|звернення|ποσό|παραγγελία|τηλέφωνο|invoice/|inv
		|订单|訂單|单号|單號|运单|快递|尾号|末四位|金额|人民币|电话|電話|客服|邮编|邮政编码|郵遞區號|会员号|发票|账号|注文番号|注文|電話番号|会員番号|お問い合わせ番号|問い合わせ番号|荷物番号|請求書番号|金額|郵便番号|伝票
		|주문|주문번호|고객센터|전화|송장|우편번호|결제금액|หมายเลขคำสั่ง|โทร|จำนวน|المبلغ|مبلغ|زمان|رقم الطلب|رقم التتبع|الهاتف|هاتف|المنتهية|الطلب|הזמנה|טלפון|מיקוד|סכום|राशि|ऑर्डर|ट्रैकिंग|फ़ोन|पिन कोड
		|pesanan|telepon|resi|berakhiran|đơn hàng|vận đơn|điện thoại|số tiền`,
	softThing: `account|acct|card|device|email|e-mail|phone|mobile|call|page|section|issue|volume|request|event|job|run|item|article|product|model|application|registration|game|konto|compte|cuenta|conto|conta|kort|karte|carte|tarjeta
		|number|nr|nr.|no.|num|numéro|número|numero|nummer|numer|číslo|numarası|номер|nomor|số|رقم|नंबर`,
	elsewhere: `reservation*|booking*|hotel|flight|boarding|itinerary|check-in|terminal|charged|buchung*|réservation|reserva|prenotazione|boeking*|vol|vuelo|volo|voo|flug|vlucht|meeting*|webinar|conference|gift card|gift-card|giftcard|gift|wi-fi|wifi|wlan|dial|dial-in|voicemail|zip file|pdf|besprechung|réunion|reunión|riunione|vergadering|spotkani*|möte|møde|toplantı|совещани*|会议|會議|ミーティング|회의|rapat|cuộc họp|اجتماع`,
	ofCode: `path|paths|owners|coverage|quality|editor|signing|dress|sample|samples|review|base|snippet|block|freeze|zip|post|postal|area|country|error|status|exit|response|source|qr|bar|dealer|product|item|style|tax|tracking|reference|booking|reservation|referral|swift|sort|branch|license|licence|course|class|airline|group|location|order|driver|shop|store|stock|survey|bus|locker|item|flight|color|colour|hex|morse|building|currency|unit
		|bestätigungs-qr|strich|quell|länder|landes|fehler|buchungs|steuer|artikel|farb|morse
		|réservation|suivi|erreur|article|fiscal|source|couleur|barres|biglietto|billete|boleto|reserva|seguimiento|error|fuente|barras|vestimenta|área|país|conduta|conducta|prenotazione|pratica|ordine|prodotto|articolo|univoco|destinatario|iban|pdr|expediente|trámite|pedido|producto|cliente|agencia|agência|cadastro|produto|dossier|produit|client|guichet|banque|agence|insee|ape|naf|tracciamento|errore|sorgente|a barre|fiscale|postale|cliente|abbigliamento|rastreio|erro|fonte|vestuário
		|boekings|fout|bron|kleur|pocztowy|pocztowe|błędu|źródłowy|kreskowy|rezerwacji|klienta|produktu|kraju|zamówienia|paczki|odbioru|boknings|fel|käll|streck|färg|reservations|fejl|kilde|streg|poštovní|chyby|zdrojový|čárový|rezervace
		|posta|hata|kaynak|rezervasyon|ürün|takip|почтовый|ошибки|исходный|товара|бронирования|страны|города|региона|поштовий|помилки|джерельний|бронювання|товару
		|エラー|予約|商品|郵便|バー|ソース|国|오류|예약|상품|지역|소스|错误|預訂|预订|商品|区域|國家|源|البريدي|الخطأ|الحجز|المنتج|الدولة|पिन|त्रुटि|बुकिंग|उत्पाद
		|pos|pemesanan|referensi|produk|kesalahan|negara|lỗi|số thuế|đặt chỗ|đặt phòng|sản phẩm|khách hàng|lỗi|nguồn|vạch|vùng|bưu chính|ไปรษณีย์|สินค้า|ข้อผิดพลาด|พัสดุ|ลูกค้า|สมาชิก|การจอง|bưu điện|đơn hàng|vận đơn`,
	ofShop: `promo|promotional|promotion|promo-|discount*|coupon*|voucher*|gift|offer|checkout|off your|off everything|off sitewide|off selected|free shipping|percent off|sale ends|offer ends|black friday|cyber monday
		|rabatt*|gutschein*|aktionscode*|aktions|ermäßigung*|promotionnel|promotionnelle|réduction|remise|descuento*|cupón|sconto|sconti|promozionale|buono|desconto|cupom|cupão|promocional
		|korting*|actie|actiecode*|kadobon*|rabat*|zniżk*|promocyjny|kupon*|rabattkod*|rabattkode*|kampanj|kampanjkod*|kampagne*|kampagnekode*|tilbudskode*|slev*|kupón*|indirim*|промокод*|скидк*|купон*|акци*|знижк*|промоакц*
		|クーポン*|割引|セール|쿠폰|할인|优惠*|折扣*|兑换码|兌換碼|券|الخصم|خصم|القسيمة|قسيمة|كوبون|प्रोमो|कूपन|छूट|ส่วนลด|คูปอง|diskon|giảm giá|khuyến mãi|ưu đãi`,
}

// unitWords follow a number that is an amount.
const unitWords = `minute*|min|mins|hour*|hrs|hr|second*|sec|secs|day*|week*|month*|year*|times|attempt*|digit*|digits|character*|request*|points|item*|people|users|views|articles|lines|files|samples|ms|mb|gb|kb|km|eur|usd|inr|gbp|pln
		|sek|nok|dkk|chf|kr|zł|kč|tl|vnd|грн|stunde*|tage*|sekunden|uhr|heure*|jour*|seconde*|hora*|día*|segundo*|ore|giorni|secondi|uur|dagen|seconden|godzin*|dni|sekund*|timm*|dag*|dias|минут*|час|часа|часов|дн*|секунд*|руб*
		|хвилин*|分钟|分鐘|分|小时|小時|秒|年|月|日|时|時|元|円|원|분|초|년|월|일|시|นาที|دقائق|دقيقة|ريال|דקות|मिनट|menit|jam|phút|dakika|saat|gün|minut*|%`
