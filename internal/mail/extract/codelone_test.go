package extract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoneCode reads messages in languages without a words file.
func TestLoneCode(t *testing.T) {
	t.Parallel()
	const six = "482913"
	tests := []struct {
		name, subject, text string
		codes               []string
		otp                 bool
	}{
		{"Esperanto, with minutes", "Via ensaluto", "Saluton Klara,\n\njen la nombro por ensaluti:\n\n482913\n\nĜi validas dum 10 minutoj.", []string{six}, true},
		{"Somali, with minutes", "Galitaankaaga", "Salaan Hodan,\n\nkan ku qor bogga:\n\n482 913\n\nWuxuu shaqaynayaa 10 daqiiqo.", []string{six}, true},
		{"Maori, no small number", "To urunga", "Kia ora Mere,\n\nanei te tau mo to urunga:\n\n482913\n\nKaua e tuku ki etahi atu.", []string{six}, false},
		{"two long numbers", "Via ensaluto", "Saluton Klara,\n\n482913\n\n551208\n\n10 minutoj", []string{}, false},
		{"in a sentence", "Novaĵoj", "Saluton,\n\nhieraŭ venis 482913 homoj dum 10 tagoj.\n\nĜis!", []string{}, false},
		{"an amount", "Via fakturo", "Saluton,\n\nsumo:\n\n482913\n\n€ dum 10 tagoj", []string{}, false},
		{"an order in English words", "Order", "Hello,\n\norder number\n\n482913\n\n10 items", []string{}, false},
		{"the subject has a number", "Raporto 44", "Saluton,\n\njen:\n\n482913\n\n10 minutoj", []string{}, false},
		{"five digits", "Raporto", "Saluton,\n\njen:\n\n48291\n\n10 minutoj", []string{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := CodesAndLinks(tt.subject, tt.text, "")
			if diff := cmp.Diff(tt.codes, got.Codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			if (got.OTP != nil) != tt.otp {
				t.Errorf("an otp: %v, want %v", got.OTP != nil, tt.otp)
			}
		})
	}
}
