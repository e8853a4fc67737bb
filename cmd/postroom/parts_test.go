package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errTest = errors.New("as the test wants it")

func begun() error { return nil }

// untilStopped is a part that works as it should.
func untilStopped(name string, stopped chan<- string) part {
	return worker(name, func(ctx context.Context) error {
		<-ctx.Done()
		stopped <- name
		return nil
	})
}

func TestRunPartsStopsAllWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan string, 2)
	parts := []part{untilStopped("one", stopped), untilStopped("two", stopped)}
	err := runParts(ctx, parts, time.Minute, func() error { cancel(); return nil })
	if err != nil {
		t.Errorf("error %v, want none", err)
	}
	if len(stopped) != 2 {
		t.Errorf("%d parts stopped, want 2", len(stopped))
	}
}

func TestRunPartsStopsTheOthersWhenOneEnds(t *testing.T) {
	t.Parallel()
	fails := func(err error) part { return worker("clock", func(context.Context) error { return err }) }
	tests := []struct {
		name  string
		part  part
		begun func() error
		want  string
	}{
		{"with an error", fails(errTest), begun, "clock: as the test wants it"},
		{"without one", fails(nil), begun, "stopped unexpectedly"},
		{"before the first log line", untilStopped("clock", make(chan string, 1)), func() error { return errTest }, errTest.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stopped := make(chan string, 1)
			err := runParts(t.Context(), []part{untilStopped("other", stopped), tt.part}, time.Minute, tt.begun)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if len(stopped) != 1 {
				t.Error("the other part was not stopped")
			}
		})
	}
}

func TestRunPartsReportsErrorsWhileStopping(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := untilStopped("door", make(chan string, 1))
	stop := broken.stop
	broken.stop = func(ctx context.Context) error { return errors.Join(stop(ctx), errTest) }
	late := worker("hand", func(ctx context.Context) error { <-ctx.Done(); return errTest })
	err := runParts(ctx, []part{broken, late}, time.Minute, begun)
	for _, want := range []string{"stop the door: as the test wants it", "hand: as the test wants it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestRunPartsStopsWaitingForAPartThatDoesNotStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		forever := make(chan struct{})
		defer close(forever)
		stuck := worker("stuck", func(context.Context) error { <-forever; return nil })
		start := time.Now()
		err := runParts(ctx, []part{stuck, untilStopped("other", make(chan string, 1))}, stopTimeout, begun)
		if err == nil || !strings.Contains(err.Error(), "1 of the 2 parts did not stop in time") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != stopTimeout {
			t.Errorf("stopped waiting after %v, want %v", took, stopTimeout)
		}
	})
}
