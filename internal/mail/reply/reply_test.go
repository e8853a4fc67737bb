package reply

import (
	"testing"

	"github.com/postroom/postroom/internal/mail/htmltext"
)

func TestReplyTextOfHTML(t *testing.T) {
	t.Parallel()
	html := `Thanks!<br><div class="gmail_quote">On Mon, Apr 2, 2012 at 6:26 PM, Ann &lt;<a href="mailto:a@b.c">a@b.c</a>&gt; wrote:<br><blockquote class="gmail_quote">Hi<br>there</blockquote></div>`
	if got := Text(htmltext.Read(html, 0, htmltext.OnlyVisible, nil).Plain(), nil); got != "Thanks!" {
		t.Errorf("got %q", got)
	}
}

func TestReplyText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"nothing quoted", "Hello\n\nYes.\n", "Hello\n\nYes."},
		{"quoted below", "Yes.\n\nOn Fri, 13 Nov 2026 at 09:14, Ann <a@b.c> wrote:\n> Lunch?\n", "Yes."},
		{"a wrapped introduction", "Yes.\n\nOn Fri, 13 Nov 2026 at 09:14, Ann of the Example Company\n<a@b.c>\nwrote:\n\n> Lunch?\n", "Yes."},
		{"reply below the quotation", "On Fri, 13 Nov 2026 at 09:14, Ann <a@b.c> wrote:\n> Lunch?\n> At noon?\n\nYes.\nYes.", "Yes.\nYes."},
		{"reply between quoted lines", "Hi Ann,\n\nOn 13 Nov 2026, at 09:14, Ann wrote:\n> Lunch?\n\nYes.\n\n> At noon?\n\nNo, at one.\n\n> Where?\n", "Hi Ann,\n\nYes.\n\nNo, at one."},
		{"wrapped quoted lines are not a reply", "Yes.\n\nOn 13 Nov 2026, at 09:14, Ann wrote:\n> Shall we meet for\nlunch?\n> Ann", "Yes."},
		{"quoted without an introduction", "> Lunch?\nYes.\n", "Yes."},
		{"a comparison is not a quotation", "We have x > y and y <\n z", "We have x > y and y <\n z"},
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
			if got := Text(tt.in, nil); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTextMayAskAbove(t *testing.T) {
	t.Parallel()
	for _, line := range aboveWords {
		if !mayAskAbove("Hello,\n## " + line + " ##\n") {
			t.Errorf("%q is not found by its stem", line)
		}
	}
	for _, line := range []string{"REPLY ABOVE THIS LINE", "Reply Above This Line", "## Reply above this line ##"} {
		if !mayAskAbove(line) {
			t.Errorf("%q is not found by its stem", line)
		}
	}
	if mayAskAbove("Your code is 123456. It expires in ten minutes.") {
		t.Error("a text without such a line may have one")
	}
}
