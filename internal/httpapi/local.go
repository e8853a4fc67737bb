package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// localCaller is the caller of a call from within this process, which has no
// key.
type localCaller struct {
	key store.Key
	// counted is set if the call is part of an MCP request: that request
	// already counted against the key, and its body is already in memory.
	counted bool
	// page is set once a call for a page of the dashboard is counted. The other
	// calls of the page are part of the same request. Nil counts every call.
	page *atomic.Bool
	// stillGood reports, during a long call, whether it may continue. Nil means
	// to check the key again.
	stillGood func(context.Context) error
	ip        netip.Addr
	// granted are operations that the caller may call with any scopes.
	granted []gen.OperationName
	// front is the request to an API in front of this one, whose response has the
	// content of those of its calls. It may be nil.
	front *requestInfo
}

type localKey struct{}

func localOf(ctx context.Context) (localCaller, bool) {
	c, ok := ctx.Value(localKey{}).(localCaller)
	return c, ok
}

// Person is a user of the dashboard.
type Person struct {
	Seq, AccountID int64
	ID             string // usr_…
	// Role decides what the person may do. Without a role it is nothing.
	Role store.Role
	// StillSignedIn is called during long calls. Its error ends the call.
	StillSignedIn func(context.Context) error
	// IP is the address of the person's client.
	IP netip.Addr
}

// scopesOf are the scopes of people, by their role.
var scopesOf = map[store.Role][]string{
	store.RoleAdmin: {"*"}, store.RoleApprover: {"read"}, store.RoleViewer: {"read"},
}

// decisions are the operations that approvers may call although they lack the scope.
var decisions = []gen.OperationName{gen.SendDraftOperation, gen.RejectDraftOperation, gen.UndoDraftOperation, gen.UpdateDraftOperation}

// AsPerson returns the context of one page of the dashboard. API calls with it,
// within this process, have a person of the account as their caller, with the
// scopes of their role. Together they count as one request against the limits of a
// key.
func AsPerson(ctx context.Context, p Person) context.Context {
	k := store.Key{
		Seq: -p.Seq, // negative, since keys have positive numbers
		ID:  p.ID, AccountID: p.AccountID, Mode: store.KeyLive, Scopes: store.JSON[[]string]{V: scopesOf[p.Role]},
	}
	c := localCaller{key: k, page: new(atomic.Bool), stillGood: p.StillSignedIn, ip: p.IP}
	if p.Role == store.RoleApprover {
		c.granted = decisions
	}
	return context.WithValue(ctx, localKey{}, c)
}

// IsPerson reports whether a caller is a person, not a key.
func IsPerson(k store.Key) bool { return k.Seq < 0 }

// AsKey returns the context of calls within this process whose caller is a key that
// the caller has verified, such as the one of an MCP request. Each call checks the
// scopes again. Only sends count against the limits.
func AsKey(ctx context.Context, k store.Key) context.Context {
	return context.WithValue(ctx, localKey{}, localCaller{key: k, counted: true, ip: infoOf(ctx).IP})
}

// asFront returns the context of the calls that an API in front of this one makes, one
// after the other, for a request.
func asFront(ctx context.Context, k store.Key) context.Context {
	info := infoOf(ctx)
	return context.WithValue(ctx, localKey{}, localCaller{key: k, counted: true, ip: info.IP, front: info})
}

// Front returns an API in front of this one, whose calls within this process have the key
// of the request as their caller. It passes what a call of this API passes: a request id,
// limits and the log. key returns the secret of a request; refuse writes an error.
func (c *Chain) Front(key func(*http.Request) string, refuse func(http.ResponseWriter, *Error), next http.Handler) http.Handler {
	return c.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, info := r.Context(), infoOf(r.Context())
		k, err := c.keyOf(ctx, key(r), "")
		if err == nil {
			info.AccountID, info.Caller = k.AccountID, k.ID
			err = c.limitKey(ctx, k, false, "")
		}
		if err != nil {
			e := c.refuse(ctx, err)
			info.setErrorHeaders(e)
			refuse(w, e)
			return
		}
		next.ServeHTTP(w, r.WithContext(asFront(ctx, k)))
	}))
}

// May reports whether the caller of ctx may call the operation, by the scopes and
// the rules for inbox_ids in the contract. With onlyCodes, the scope codes:read is
// enough for an operation with view=code.
func May(ctx context.Context, op gen.OperationName, onlyCodes bool) bool {
	c, ok := localOf(ctx)
	scopes := slices.DeleteFunc(slices.Clone(gen.GetRolesForBearerAuth(op)), func(s string) bool { return s == CodesRead && !onlyCodes })
	return ok && hasAnyScope(c.key.Scopes.V, scopes) && reaches(c.key, op)
}

// Given reports whether the caller of ctx was given one of these scopes, or all.
// Other than May, it does not count scopes that include them.
func Given(ctx context.Context, scopes ...string) bool {
	c, ok := localOf(ctx)
	return ok && slices.ContainsFunc(c.key.Scopes.V, func(have string) bool {
		return have == "*" || have == "admin" || slices.Contains(scopes, have)
	})
}

// NewLocalClient returns a client whose calls api serves in this process. It holds
// each response in memory as a whole and returns redirects instead of following
// them, as the contract documents them.
func NewLocalClient(api http.Handler) (*gen.Client, error) {
	return gen.NewClient("http://localhost", localSecurity{}, gen.WithClient(&http.Client{
		Transport:     Local{api},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}))
}

// localToken takes the place of a key. The caller comes from the context.
const localToken = "local"

type localSecurity struct{}

func (localSecurity) BearerAuth(context.Context, gen.OperationName) (gen.BearerAuth, error) {
	return gen.BearerAuth{Token: localToken}, nil
}

// Local is the one way to call the API from within the process: an http.RoundTripper
// that hands a request to the API and returns its response, without a network. The
// dashboard and approvals use it through NewLocalClient, MCP with requests of its own.
//
// A call passes all that a call from outside passes. Only the API key is replaced by the
// caller of the context (AsPerson or AsKey), whose scopes HandleBearerAuth checks. The
// generated handlers cannot be called without it, because they rely on the generated
// server to validate parameters, and explanations quote the JSON of a request.
type Local struct{ API http.Handler }

var errNoLocalCaller = errors.New("a call within the process without a caller in its context")

// RoundTrip implements http.RoundTripper.
func (t Local) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := localOf(r.Context())
	if !ok {
		return nil, errNoLocalCaller
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+localToken)
	r.RemoteAddr, r.RequestURI = netip.AddrPortFrom(c.ip, 0).String(), r.URL.RequestURI()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := &localResponse{header: http.Header{}}
	t.API.ServeHTTP(w, r)
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return &http.Response{
		Status: fmt.Sprint(w.status, " ", http.StatusText(w.status)), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// localResponse is an http.ResponseWriter that stores the response.
type localResponse struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (w *localResponse) Header() http.Header { return w.header }

func (w *localResponse) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *localResponse) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
