package queue

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// job is one attempt to deliver one message to recipients that share a
// destination.
type job struct {
	mail  *outgoing
	dest  dest
	rcpts []store.Claimed

	began   time.Time // when the attempt began
	data    int64     // bytes of data in the attempt
	reached uint64    // the reached counter of dest when the attempt began

	work *work.Job // holds the leases
}

// maxTime returns how long the attempt may take until the message is handed over.
func (j *job) maxTime() time.Duration {
	return min(attemptTime+time.Duration(j.data/slowestRate)*time.Second, longestAttempt)
}

// outcome is the result of an attempt for each recipient of the job.
// The zero outcome records nothing.
type outcome struct{ results []result }

func sameOutcome(j *job, v result) outcome { return outcome{all(len(j.rcpts), v)} }

// outgoing is a message that is being delivered. The jobs of one claim share it,
// so that it is signed only once, unless it differs by recipient.
type outgoing struct {
	message store.Message
	from    string // reverse-path, without feedback addresses
	fields  string // header fields for one recipient

	mu        sync.Mutex
	signed    bool
	signature string
}

// jobsOf groups claimed recipients into jobs.
func (q *Queue) jobsOf(claimed []store.Claimed) []*job {
	type key struct {
		message int64
		dest    dest
	}
	messages := map[int64]*outgoing{}
	open := map[key]*job{}
	var jobs []*job
	for _, c := range claimed {
		m, fields := messages[c.MessageSeq], q.fieldsOf(c)
		if m == nil || fields != "" {
			m = &outgoing{message: c.Message, from: c.From, fields: fields}
			messages[c.MessageSeq] = m
		}
		k := key{c.MessageSeq, q.destOf(c)}
		j := open[k]
		if j == nil || len(j.rcpts) >= smtp.MaxRecipients || fields != "" {
			j = &job{mail: m, dest: k.dest}
			open[k] = j
			jobs = append(jobs, j)
		}
		j.rcpts = append(j.rcpts, c)
		if j.data == 0 || q.feedback != nil { // else all recipients share the data
			j.data += c.Message.Size
		}
	}
	return jobs
}

func (q *Queue) destOf(c store.Claimed) dest {
	switch {
	case c.Message.TestMode:
		return dest{kind: toTestMode}
	case q.allLocal, strings.EqualFold(c.Domain, q.domain):
		return dest{kind: toInbox}
	case q.relay != nil:
		return dest{kind: toRelay}
	}
	return dest{kind: toMX, domain: c.Domain}
}

// signedMail is a message with its signature, as it is sent.
type signedMail struct {
	io.Reader
	size int64
	raw  *store.Raw
}

func (s *signedMail) Close() error { return s.raw.Close() }

// open opens the bytes to send. A message is signed on the first attempt; later
// attempts use the stored signature and send the same bytes. A message with
// fields for its recipient is signed for each attempt. The caller closes it.
func (q *Queue) open(ctx context.Context, m *outgoing) (*signedMail, error) {
	raw, err := q.store.Raw(ctx, m.message.Seq)
	if err != nil {
		return nil, err
	}
	signature := raw.Signature
	if signature == "" || m.fields != "" {
		if signature, err = q.sign(ctx, m, raw); err != nil {
			_ = raw.Close()
			return nil, err
		}
	}
	return &signedMail{
		Reader: io.MultiReader(strings.NewReader(signature+m.fields), raw),
		size:   int64(len(signature)+len(m.fields)) + raw.Size,
		raw:    raw,
	}, nil
}

// sign returns the signature that the jobs of one claim share. It leaves raw at
// its start.
func (q *Queue) sign(ctx context.Context, m *outgoing, raw io.ReadSeeker) (string, error) {
	if q.signer == nil || q.allLocal {
		return "", nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.signed {
		return m.signature, nil
	}
	domain := m.message.FromEmail[strings.LastIndexByte(m.message.FromEmail, '@')+1:]
	account := m.message.AccountID
	if strings.EqualFold(domain, q.domain) {
		account = store.TheInstall
	}
	signature, err := q.signer.Sign(ctx, account, domain, io.MultiReader(strings.NewReader(m.fields), raw))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read the mail: %w", err)
	}
	m.signed, m.signature = true, signature
	return signature, nil
}

// newSignature returns the signature of this claim for all recipients, to be
// stored.
func (m *outgoing) newSignature() string {
	if m.fields != "" {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.signature
}
