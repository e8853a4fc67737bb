package httpserver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// framedRequests are requests in a row, with the body that the handler reads, or
// "refused". After that nothing more is read of the connection.
var framedRequests = []struct {
	name, sent string
	bodies     []string
}{
	{"both", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"refused"}},
	{"both in the other order", "POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\nX: y\r\nCONTENT-LENGTH: 5\r\n\r\n0\r\n\r\n", []string{"refused"}},
	{"both with bare line feeds", "POST / HTTP/1.1\nHost: a\nContent-Length: 3\nTransfer-Encoding: chunked\n\n0\r\n\r\n", []string{"refused"}},
	{"both with a length of nothing", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"refused"}},
	{"HTTP/1.0 with Transfer-Encoding", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"refused"}},
	{
		"HTTP/1.0 with a long path", "GET /" + strings.Repeat("a", 5000) + " HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		[]string{"refused"},
	},
	{"a length with many zeros", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + strings.Repeat("0", 300) + "1\r\n\r\na", []string{"refused"}},
	{
		"after one with a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" +
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"hello", "refused"},
	},
	{
		"after one without", "GET / HTTP/1.1\r\nHost: a\r\n\r\n" +
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"", "refused"},
	},
	{
		"after a chunked one", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n, world!\r\n\r\n0\r\nX-T: 1\r\n\r\n" +
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"hello, world!\r\n", "refused"},
	},
	{
		"in a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		[]string{"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"[:65], ""},
	},
	{
		"many in a row", strings.Repeat("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 100),
		strings.Split(strings.Repeat("x", 100), ""),
	},
}

// TestAmbiguousRequestsAreRefused sends requests in a row on one connection, in one
// piece and byte by byte.
func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	d := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		_, _ = fmt.Fprintf(w, "%q", body)
	})
	for _, tt := range framedRequests {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, byte by byte %t", tt.name, slow), func(t *testing.T) {
				t.Parallel()
				c := d.dial(t)
				if slow {
					go func() {
						for i := range len(tt.sent) { // the server may close before the end
							_, _ = c.WriteString(tt.sent[i : i+1])
							_ = c.Flush()
						}
					}()
				} else {
					_, _ = c.WriteString(tt.sent)
					_ = c.Flush()
				}
				for i, want := range tt.bodies {
					res, err := http.ReadResponse(c.Reader, nil)
					if err != nil {
						t.Fatalf("response %d: %v", i, err)
					}
					got, err := io.ReadAll(res.Body)
					_ = res.Body.Close()
					switch {
					case err != nil:
						t.Fatalf("response %d: %v", i, err)
					case want != "refused" && (res.StatusCode != http.StatusOK || string(got) != fmt.Sprintf("%q", want)):
						t.Fatalf("response %d: %d %s, want %q", i, res.StatusCode, got, want)
					case want == "refused" && (res.StatusCode != http.StatusBadRequest || !res.Close || !bytes.Contains(got, []byte("Transfer-Encoding cannot be combined"))):
						t.Fatalf("response %d: %d %s, want a refusal", i, res.StatusCode, got)
					}
				}
				if tt.bodies[len(tt.bodies)-1] == "refused" {
					if b, err := c.ReadByte(); err == nil {
						t.Errorf("the connection went on with %q", b)
					}
				}
			})
		}
	}
}

// FuzzFraming compares where requests end with what net/http makes of the same
// bytes, for requests that are not ambiguous.
func FuzzFraming(f *testing.F) {
	for _, tt := range framedRequests {
		f.Add(tt.sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		var whole, single framing
		at := 0
		ends := []int{}
		for rest := []byte(sent); len(rest) > 0; {
			n, ambiguous := whole.next(rest)
			at += n
			rest = rest[n:]
			if whole.part == inDisorder || ambiguous {
				break
			}
			if whole.part == inHead && !whole.begun && len(whole.line) == 0 {
				ends = append(ends, at)
			}
		}
		for i := range at { // byte by byte comes to the same
			if _, ambiguous := single.next([]byte{sent[i]}); ambiguous && i != at-1 {
				t.Fatalf("ambiguous at byte %d, and in one piece at %d", i, at)
			}
		}
		if whole.part != single.part || whole.left != single.left || string(whole.line) != string(single.line) {
			t.Fatalf("in one piece %+v, byte by byte %+v", whole, single)
		}
		in := &countingReader{r: iotest.OneByteReader(strings.NewReader(sent))}
		buffered := bufio.NewReaderSize(in, 16)
		for _, end := range ends {
			req, err := http.ReadRequest(buffered)
			if err != nil {
				return // net/http closes the connection
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			if read := in.n - buffered.Buffered(); read != end {
				t.Fatalf("net/http ends a request at byte %d, framing at %d", read, end)
			}
		}
	})
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// BenchmarkFraming is what each small request costs beside net/http.
func BenchmarkFraming(b *testing.B) {
	head := []byte("GET /v1/inboxes?limit=20 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/8\r\nAccept: */*\r\nAuthorization: Bearer sk_live_x\r\n\r\n")
	var f framing
	b.ReportAllocs()
	for b.Loop() {
		if n, ambiguous := f.next(head); n != len(head) || ambiguous {
			b.Fatal(n)
		}
	}
}
