package store_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

var begin = time.Date(2026, 9, 23, 12, 0, 0, 123_456_789, time.UTC)

func TestKeySecretIsNotStored(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		storetest.Key(t, s, storetest.Account(t, s).Seq, "confidential")
		wantNotStored(t, cfg, storetest.Secret("confidential"))
	})
}
