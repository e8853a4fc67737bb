package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is how often the certificate files are checked for changes.
const lookAgain = time.Minute

// certificate is a TLS certificate in two files, reloaded when they change. If
// the new files are invalid, the old certificate stays in use.
type certificate struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	written time.Time // modification time of the newer file at the last load
	looked  time.Time
}

func openCertificate(cert, key string, now func() time.Time, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, now: now, log: log, looked: now()}
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookAgain {
		c.looked = now
		if err := c.read(); err != nil {
			c.log.Warn("reload of the certificate failed; the old certificate stays in use", "error", err)
		}
	}
	return c.pair, nil
}

// read loads the files if they have changed.
func (c *certificate) read() error {
	var written time.Time
	for _, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("load the certificate: %w", err)
		}
		if info.ModTime().After(written) {
			written = info.ModTime()
		}
	}
	if written.Equal(c.written) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("load the certificate: %w", err)
	}
	c.pair, c.written = &pair, written
	return nil
}
