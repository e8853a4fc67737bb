// Package linkscan visits the links of received messages as the mail scanners of
// companies and the previews of chat programs do, and reports which links stop working by
// that. It is for development: it sends requests wherever a message says.
package linkscan

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/netguard"
)

const (
	// delay is how long after its arrival a message is scanned.
	delay = time.Second
	// workers is how many messages are scanned at the same time.
	workers = 4
	// mostWaiting is how many messages wait. Further ones are not scanned.
	mostWaiting = 1000
	// mostKept is how many messages have results, the latest ones.
	mostKept = 1000
	// mostLinks is how many links of a message are visited, the best ones.
	mostLinks = 20
	// mostRead is how many bytes of a page are read.
	mostRead     = 64 << 10
	mostRedirect = 5
	visitTime    = 5 * time.Second
	messageTime  = time.Minute
)

// privateNetworks are where programs in development run. Link-local addresses, where
// clouds keep credentials, are not among them.
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

// visitor is who makes a visit, by its name in results. Burning is how the result names
// the visit if the link works no more after it.
type visitor struct {
	as, method, userAgent, burning string
}

// visitors make one visit each, one after the other. The last one is a person.
var visitors = []visitor{
	{"scanner", http.MethodHead, scannerAgent, "HEAD"},
	{"scanner", http.MethodGet, scannerAgent, "GET"},
	{"preview", http.MethodGet, "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "preview"},
	{"browser", http.MethodGet, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", ""},
}

// Scanners of mail name a browser.
const scannerAgent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

type job struct {
	id    string
	links []string
	due   time.Time
}

// Scanner scans the links of messages and keeps the results in memory. It is safe for
// concurrent use.
type Scanner struct {
	client *http.Client
	log    *slog.Logger
	jobs   chan job

	mu    sync.Mutex
	found map[string][]gen.ScannedLink
	order []string // IDs in found, oldest first
}

// New returns a scanner.
func New(log *slog.Logger) *Scanner {
	guard := netguard.New(netguard.Config{Allow: privateNetworks})
	dialer := net.Dialer{Timeout: visitTime, Control: guard.Control}
	return &Scanner{
		log: log, jobs: make(chan job, mostWaiting), found: map[string][]gen.ScannedLink{},
		client: &http.Client{
			Timeout: visitTime,
			Transport: &http.Transport{
				DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: mostRead,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // programs in development have certificates of their own
			},
			CheckRedirect: func(_ *http.Request, via []*http.Request) error {
				if len(via) > mostRedirect {
					return fmt.Errorf("more than %d redirects", mostRedirect)
				}
				return nil
			},
		},
	}
}

// Add has the links of a message scanned, unless too many messages wait.
func (s *Scanner) Add(messageID string, links []string) {
	if len(links) == 0 {
		return
	}
	select {
	case s.jobs <- job{messageID, links[:min(len(links), mostLinks)], time.Now().Add(delay)}:
	default:
	}
}

// Found returns what the visits to the links of a message found, or nil until they end.
func (s *Scanner) Found(messageID string) []gen.ScannedLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found[messageID]
}

// Run scans until ctx ends.
func (s *Scanner) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				select {
				case j := <-s.jobs:
					s.scan(ctx, j)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
	return nil
}

func (s *Scanner) scan(ctx context.Context, j job) {
	select {
	case <-time.After(time.Until(j.due)):
	case <-ctx.Done():
		return
	}
	limited, cancel := context.WithTimeout(ctx, messageTime)
	defer cancel()
	var all []gen.ScannedLink
	for _, link := range j.links {
		one := s.link(limited, link)
		if by, burned := one.BurnedBy.Get(); burned {
			s.log.WarnContext(ctx, "a link works no more after the visit of a scanner", "message_id", j.id, "burned_by", by)
		}
		all = append(all, one)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[j.id] = all
	if s.order = append(s.order, j.id); len(s.order) > mostKept {
		delete(s.found, s.order[0])
		s.order = s.order[1:]
	}
}

// link visits a link and compares what the visitors got.
func (s *Scanner) link(ctx context.Context, link string) gen.ScannedLink {
	out := gen.ScannedLink{URL: link, BurnedBy: gen.NilString{Null: true}}
	var last *page // the latest that worked
	var by string  // its visit
	for _, v := range visitors {
		p := s.visit(ctx, v, link)
		shown := gen.LinkVisit{As: v.as, Method: v.method, Status: gen.NilInt{Null: true}, Error: gen.NilString{Null: true}}
		if p.err != nil {
			shown.Error = gen.NewNilString(p.err.Error())
		} else {
			shown.Status = gen.NewNilInt(p.status)
		}
		out.Visits = append(out.Visits, shown)
		out.Works = p.works() && out.BurnedBy.Null
		switch {
		case last != nil && out.BurnedBy.Null && p.burnedSince(*last):
			out.BurnedBy, out.Works = gen.NewNilString(by), false
		case p.works():
			last, by = &p, v.burning
		}
	}
	return out
}

// page is what a visitor got.
type page struct {
	status int
	place  string // host and path after redirects
	text   string // without scripts and styles
	err    error
}

func (p page) works() bool { return p.err == nil && p.status < http.StatusBadRequest }

// burnedSince reports whether a link worked for an earlier visitor and does not for this
// one: it is an error, leads elsewhere, or says now that it was used.
func (p page) burnedSince(earlier page) bool {
	if p.err != nil || p.status == http.StatusTooManyRequests {
		return false
	}
	return !p.works() || p.place != earlier.place || used.MatchString(p.text) && !used.MatchString(earlier.text)
}

var (
	used   = regexp.MustCompile(`(?i)\bexpired\b|already\s+(been\s+)?used|no\s+longer\s+valid|not\s+valid|invalid\s+(link|token|code)|(link|token|code)\s+(is|was)\s+invalid`)
	unread = regexp.MustCompile(`(?is)<(script|style|template)\b.*?</(script|style|template)>|<!--.*?-->`)
)

func (s *Scanner) visit(ctx context.Context, v visitor, link string) page {
	req, err := http.NewRequestWithContext(ctx, v.method, link, http.NoBody)
	if err != nil {
		return page{err: errors.New("not an address that can be visited")}
	}
	req.Header.Set("User-Agent", v.userAgent)
	req.Header.Set("Accept", "text/html,*/*;q=0.8")
	res, err := s.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the link
		}
		return page{err: err}
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, mostRead)) // a page that breaks off has answered
	_ = res.Body.Close()
	return page{status: res.StatusCode, place: res.Request.URL.Host + res.Request.URL.Path, text: unread.ReplaceAllString(string(text), "")}
}
