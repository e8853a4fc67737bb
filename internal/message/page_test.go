package message

import (
	"strings"
	"testing"
)

func TestHTMLToText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"paragraphs", "<p>One</p><p>Two</p>", "One\n\nTwo"},
		{"blocks", "<div>One<div>Two</div>Three</div>", "One\nTwo\nThree"},
		{"white space is folded", " One \n\t <b>two</b>\n<i> three</i>", "One two three"},
		{"inline elements do not split words", "S<b>plit</b>ting", "Splitting"},
		{"line breaks", "One<br>Two<br><br>Three", "One\nTwo\n\nThree"},
		{"table cells", "<table><tr><td>Order<td>42</td><tr><th>Total<th>$5</table>", "Order 42\nTotal $5"},
		{"lists", "<ul><li>One<li>Two</ul>", "One\nTwo"},
		{"entities", "a&nbsp;&amp;&lt;b&gt; &euro;&#8364;&#x20AC; &bogus;", "a &<b> €€€ &bogus;"},
		{"preformatted", "<pre>a\n  b\n\nc</pre>", "a\nb\n\nc"},
		{"styles, scripts, titles, comments", "<title>T</title><style>p{}</style><script>x()</script><!-- c -->Text", "Text"},
		{"hidden by style", "<div style='DISPLAY : none !important'>No <p>no</p></div>Yes", "Yes"},
		{"hidden by attribute", "<p hidden>No</p>Yes", "Yes"},
		{"hidden by its size", "<div style='max-height:0;overflow:hidden'>No</div>Yes", "Yes"},
		{"invisible", "<span style='visibility:hidden'>No</span><span style=opacity:0>No</span>Yes", "Yes"},
		{"a font size of zero is layout", "<td style='font-size:0px'><p style='font-size:13px'>Yes</p></td>", "Yes"},
		{"a hidden cell ends with its row", "<table><tr><td style='display:none'>No<td>Yes<tr><td>Too</table>", "Yes\nToo"},
		{"hidden, with void elements inside", "<div style='display:none'><img><br>No</div>Yes", "Yes"},
		{"invisible characters", "4&#8203;8&shy;2", "482"},
		{"filler of previews", "Hello &zwnj;&nbsp;&zwnj;&nbsp;", "Hello"},
		{"a link", `<a href="https://example.com/x?a=1&amp;b=2">Read on</a>.`, "Read on <https://example.com/x?a=1&b=2>."},
		{"a link that shows its address", `<a href="https://example.com/">https://example.com/</a>`, "https://example.com/"},
		{"a link that leads nowhere", `<a href="#top">Top</a> <a href="mailto:a@b.c">Mail</a>`, "Top Mail"},
		{"a quotation", "Yes<div>Ann wrote:</div><blockquote>One<br>Two<blockquote type=cite>Three</blockquote></blockquote>No", "Yes\nAnn wrote:\n>\n> One\n> Two\n> >\n> > Three\n\nNo"},
		{"an indented block is no quotation", "Yes<blockquote>One</blockquote>", "Yes\n\nOne"},
		{"text alone", "a < b", "a < b"},
		{"a broken tag at the end", "Yes<div", "Yes"},
		{"stray end tags", "</div></p></table>Yes</b>", "Yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := HTMLToText(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestHTMLVisibleTextHasNoAddresses(t *testing.T) {
	t.Parallel()
	if got := HTMLVisibleText(`Please <a href="https://example.com/">read on</a>`); got != "Please read on" {
		t.Errorf("got %q", got)
	}
}

func TestReplyTextOfHTML(t *testing.T) {
	t.Parallel()
	html := `Thanks!<br><div class="gmail_quote">On Mon, Apr 2, 2012 at 6:26 PM, Ann &lt;<a href="mailto:a@b.c">a@b.c</a>&gt; wrote:<br><blockquote class="gmail_quote">Hi<br>there</blockquote></div>`
	if got := ReplyText(HTMLVisibleText(html)); got != "Thanks!" {
		t.Errorf("got %q", got)
	}
}

func TestReplyText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"nothing quoted", "Hello\n\nYes.\n", "Hello\n\nYes."},
		{"quoted below", "Yes.\n\nOn Fri, 13 Nov 2026 at 09:14, Ann <a@b.c> wrote:\n> Lunch?\n", "Yes."},
		{"a wrapped introduction", "Yes.\n\nOn Fri, 13 Nov 2026 at 09:14, Ann of the Example Company\n<a@b.c>\nwrote:\n\n> Lunch?\n", "Yes."},
		{"answered below", "On Fri, 13 Nov 2026 at 09:14, Ann <a@b.c> wrote:\n> Lunch?\n> At noon?\n\nYes.\nYes.", "Yes.\nYes."},
		{"answered in between", "Hi Ann,\n\nOn 13 Nov 2026, at 09:14, Ann wrote:\n> Lunch?\n\nYes.\n\n> At noon?\n\nNo, at one.\n\n> Where?\n", "Hi Ann,\n\nYes.\n\nNo, at one."},
		{"wrapped quoted lines are no answers", "Yes.\n\nOn 13 Nov 2026, at 09:14, Ann wrote:\n> Shall we meet for\nlunch?\n> Ann", "Yes."},
		{"quoted without an introduction", "> Lunch?\nYes.\n", "Yes."},
		{"a comparison is no quotation", "We have x > y and y <\n z", "We have x > y and y <\n z"},
		{"the mark of a signature", "Yes.\n-- \nAnn\nExample Inc.", "Yes."},
		{"a telephone", "Yes.\n\nSent from my iPhone\n", "Yes."},
		{"a German telephone", "Ja.\n\nVon meinem iPhone gesendet", "Ja."},
		{"an original message", "Yes.\n\n-----Original Message-----\nFrom: Ann\nSent: Friday\n\nLunch?", "Yes."},
		{"a German original message", "Ja.\n\n-----Ursprüngliche Nachricht-----\nVon: Ann", "Ja."},
		{"a header block", "Yes.\n\n________________________________\nFrom: Ann <a@b.c>\nSent: Friday, November 13, 2026 9:14 AM\nTo: Bob\nSubject: Lunch\n\nLunch?", "Yes."},
		{"a Spanish header block in bold", "Sí.\n\n*De:* Ann <a@b.c>\n*Enviado:* viernes\n*Para:* Bob\n*Asunto:* Comida\n\n¿Comemos?", "Sí."},
		{"German", "Ja.\n\nAm 13.11.26 um 09:14 schrieb Ann:\n> Essen?", "Ja."},
		{"French", "Oui.\n\nLe ven. 13 nov. 2026 à 09:14, Ann <a@b.c> a écrit :\n> Déjeuner ?", "Oui."},
		{"Spanish", "Sí.\n\nEl vie, 13 nov 2026 a las 9:14, Ann (<a@b.c>) escribió:\n> ¿Comemos?", "Sí."},
		{"Italian", "Sì.\n\nIl giorno ven 13 nov 2026 alle ore 09:14 Ann <a@b.c> ha scritto:\n> Pranzo?", "Sì."},
		{"Dutch", "Ja.\n\nOp vr 13 nov 2026 om 09:14 schreef Ann <a@b.c>:\n> Lunch?", "Ja."},
		{"Portuguese", "Sim.\n\nEm sex., 13 de nov. de 2026 às 09:14, Ann <a@b.c> escreveu:\n> Almoço?", "Sim."},
		{"Polish", "Tak.\n\npt., 13 lis 2026 o 09:14 Ann <a@b.c> napisał(a):\n> Obiad?", "Tak."},
		{"Swedish", "Ja.\n\nDen fre 13 nov. 2026 kl 09:14 skrev Ann <a@b.c>:\n> Lunch?", "Ja."},
		{"Russian", "Да.\n\nпт, 13 нояб. 2026 г. в 09:14, Ann <a@b.c>:\n> Обед?", "Да."},
		{"Chinese", "好的。\n\nAnn <a@b.c> 于2026年11月13日周五 09:14写道：\n> 午饭？", "好的。"},
		{"Japanese", "はい。\n\n2026年11月13日(金) 9:14 Ann <a@b.c>:\n> 昼食？", "はい。"},
		{"a sentence that ends with a colon", "We met on 13 Nov 2026.\nPlease bring:\n- bread\n- the 2025 wine", "We met on 13 Nov 2026.\nPlease bring:\n- bread\n- the 2025 wine"},
		{"a forward with a note", "See below.\n\n---------- Forwarded message ---------\nFrom: Ann <a@b.c>\nSubject: Lunch\n\nLunch?", "See below."},
		{"a forward without a note", "---------- Forwarded message ---------\nFrom: Ann <a@b.c>\n\nLunch?", "---------- Forwarded message ---------\nFrom: Ann <a@b.c>\n\nLunch?"},
		{"only quoted", "On 13 Nov 2026, at 09:14, Ann wrote:\n> Lunch?", ""},
		{"nothing", "", ""},
		{"CRLF", "Yes.\r\n\r\nOn 13 Nov 2026, at 09:14, Ann wrote:\r\n> Lunch?\r\n", "Yes."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ReplyText(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestForward(t *testing.T) {
	t.Parallel()
	h := ForwardedHeader{
		From: Address{"Ann <script>", "a@b.c"}, To: []Address{{"", "d@e.f"}, {"Bob", "g@h.i"}},
		Date: testDate, Subject: "A & B\r\nBcc: x@y.z",
	}
	text := ForwardText("See below.\n", h, "Hello")
	want := "See below.\n\n---------- Forwarded message ---------\nFrom: Ann <script> <a@b.c>\nDate: Fri, 13 Nov 2026 09:14:20 +0000\n" +
		"Subject: A & B  Bcc: x@y.z\nTo: d@e.f, Bob <g@h.i>\n\nHello"
	if text != want {
		t.Errorf("text: got %q, want %q", text, want)
	}
	if got := ReplyText(text); got != "See below." {
		t.Errorf("the note of a forward: got %q", got)
	}
	html := ForwardHTML("<p>See below.</p>", h, "<!doctype html><html><head><title>T</title><style>p{color:red}</style><meta charset=x></head><body class=x><p>Hello</p><script>x()</script></body></html>")
	for _, part := range []string{"<p>See below.</p>", "<b>From:</b> Ann &lt;script&gt; &lt;a@b.c&gt;<br>", "A &amp; B", "<style>p{color:red}</style>", "<p>Hello</p>"} {
		if !strings.Contains(html, part) {
			t.Errorf("HTML lacks %q: %s", part, html)
		}
	}
	for _, part := range []string{"<html", "<body", "<head", "</body", "doctype", "<title", "x()", "<meta"} {
		if strings.Contains(html, part) {
			t.Errorf("HTML has %q: %s", part, html)
		}
	}
}
