package handlers

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/internal/httpapi"
)

// Large batches wait for each other; small ones do not wait.
func TestBatchRoom(t *testing.T) {
	t.Parallel()
	of := semaphore.NewWeighted(1)
	first, second, small := batchRoom{of: of}, batchRoom{of: of}, batchRoom{of: of}
	for range 3 {
		if err := first.take(t.Context(), smallBatch); err != nil {
			t.Fatal(err)
		}
	}
	if err := small.take(t.Context(), smallBatch); err != nil {
		t.Errorf("a small batch: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.take(gone, smallBatch+1); !errors.Is(err, context.Canceled) {
		t.Errorf("a large batch beside another: %v", err)
	}
	second.leave()
	first.leave()
	third := batchRoom{of: of}
	if err := third.take(t.Context(), smallBatch+1); err != nil {
		t.Errorf("a large batch after another: %v", err)
	}
	var no *httpapi.Error
	if err := third.take(t.Context(), maxBatchBytes); !errors.As(err, &no) || no.Param != "recipients" {
		t.Errorf("a batch that is too large: %v", err)
	}
}
