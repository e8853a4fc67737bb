package message
import ("testing";"fmt")
func TestZZDbg(t *testing.T){
	for _, s := range []string{"vin 1hgcm82633a004352, recall 26v-482, dealer code 20714."} {
		fmt.Println(findWords(s,0))
	}
}
