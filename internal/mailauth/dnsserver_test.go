package mailauth

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer serves a zone over UDP and TCP on one port. Record types beyond the
// usual ones select a failure: SERVFAIL, REFUSED, SILENT, GARBAGE, and ALIAS, a
// CNAME without its target.
type dnsServer struct{ zone *zone }

// startDNS returns a resolver that asks a server with that zone.
func startDNS(t *testing.T, text string) *net.Resolver {
	t.Helper()
	s := dnsServer{parseZone(t, text)}
	tcp, udp := listenTwice(t)
	t.Cleanup(func() { _, _ = tcp.Close(), udp.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			if response := s.respond(buf[:n], 512); response != nil {
				_, _ = udp.WriteTo(response, from)
			}
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go s.serveTCP(conn)
		}
	}()
	var d net.Dialer
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, tcp.Addr().String())
	}}
}

// listenTwice listens on a port that is free for both UDP and TCP.
func listenTwice(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	for tries := 0; ; tries++ {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			return tcp, udp
		}
		if _ = tcp.Close(); tries == 10 {
			t.Fatal(err)
		}
	}
}

func (s dnsServer) serveTCP(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var head [2]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		response := s.respond(query, 1<<16-1)
		if response == nil {
			continue
		}
		size := uint16(len(response)) //nolint:gosec // it was made to fit
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, size), response...)); err != nil {
			return
		}
	}
}

// respond returns the response to a query, or nil for none. A response longer
// than limit is truncated.
func (s dnsServer) respond(query []byte, limit int) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, RecursionAvailable: true, RecursionDesired: true},
		Questions: []dnsmessage.Question{q},
	}
	if err := s.fill(&reply, q); err != nil {
		if errors.Is(err, errGarbage) {
			return []byte("garbage")
		}
		return nil
	}
	packed, err := reply.Pack()
	if err != nil || len(packed) > limit {
		reply.Truncated, reply.Answers = true, nil
		packed, _ = reply.Pack()
	}
	return packed
}

var (
	errSilent  = errors.New("silent")
	errGarbage = errors.New("garbage")
)

func (s dnsServer) fill(reply *dnsmessage.Message, q dnsmessage.Question) error {
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	records := s.zone.records[name]
	if len(records) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}
	for _, r := range records {
		var body dnsmessage.ResourceBody
		switch r.kind {
		case "SERVFAIL":
			reply.RCode = dnsmessage.RCodeServerFailure
		case "REFUSED":
			reply.RCode = dnsmessage.RCodeRefused
		case "SILENT":
			return errSilent
		case "GARBAGE":
			return errGarbage
		case "ALIAS":
			head.Type, body = dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(r.value)}
		case "TXT":
			head.Type, body = dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: pieces(r.value)}
		case "A":
			var a dnsmessage.AResource
			copy(a.A[:], net.ParseIP(r.value).To4())
			head.Type, body = dnsmessage.TypeA, &a
		case "MX":
			_, host, _ := strings.Cut(r.value, " ")
			head.Type, body = dnsmessage.TypeMX, &dnsmessage.MXResource{MX: dnsmessage.MustNewName(host)}
		}
		if body != nil && (head.Type == q.Type || head.Type == dnsmessage.TypeCNAME) {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: head, Body: body})
		}
	}
	return nil
}

// pieces cuts a text into strings of 255 bytes.
func pieces(s string) []string {
	var out []string
	for len(s) > 255 {
		out, s = append(out, s[:255]), s[255:]
	}
	return append(out, s)
}
