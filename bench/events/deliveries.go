package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/place"
)

// deliveries measures how many posts a second go to webhook endpoints, and how long one
// takes from the call that creates the event to its arrival.
type deliveries struct {
	service           string
	postgres          bool
	events, singles   int
	endpoints, conns  int
	rounds            int
	engine            string
	running           *place.Service
	api               client
	inboxID           string
	receiver          *receiver
	rates, cpu        []float64
	latencies, behind samples
}

// samples are times.
type samples []time.Duration

// at returns the value in milliseconds that the share p of all samples does not exceed.
// The samples must be sorted.
func (s samples) at(p float64) float64 {
	return float64(s[min(len(s)-1, int(p*float64(len(s))))].Microseconds()) / 1000
}

func measureDeliveries(ctx context.Context, args []string) (err error) {
	d := &deliveries{}
	flags := flag.NewFlagSet("deliveries", flag.ExitOnError)
	flags.StringVar(&d.service, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flags.BoolVar(&d.postgres, "postgres", false, "use a new schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES")
	flags.IntVar(&d.events, "n", 5000, "events in a round")
	flags.IntVar(&d.singles, "singles", 1000, "events created one after the other, for the latency")
	flags.IntVar(&d.endpoints, "endpoints", 1, "endpoints that receive each event (at most 20)")
	flags.IntVar(&d.conns, "c", 16, "connections that create the events")
	flags.IntVar(&d.rounds, "rounds", 3, "number of rounds; the medians are printed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := place.New(ctx, d.service, d.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	d.engine = p.Engine()
	if d.running, err = p.Start(ctx, "POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8"); err != nil {
		return err
	}
	defer d.running.Stop()
	if d.receiver, err = newReceiver(ctx); err != nil {
		return err
	}
	defer d.receiver.close()
	return d.run(ctx)
}

func (d *deliveries) run(ctx context.Context) (err error) {
	d.api = newClient(d.running, d.conns)
	if d.inboxID, err = d.api.newInbox(ctx); err != nil {
		return err
	}
	for i := range d.endpoints {
		var hook struct{ ID string }
		body := map[string]any{"url": fmt.Sprintf("%s/%d", d.receiver.url, i), "events": []string{"message.received"}}
		if err := d.api.post(ctx, "/v1/webhooks", body, &hook); err != nil {
			return err
		}
	}
	if err := d.round(ctx, 200, false); err != nil { // connections and caches
		return err
	}
	for range d.rounds {
		if err := d.round(ctx, d.events, true); err != nil {
			return err
		}
	}
	for range d.singles {
		if err := d.single(ctx); err != nil {
			return err
		}
	}
	d.print()
	return nil
}

// round creates events while the endpoints delay their responses, and then measures how
// fast all deliveries are made.
func (d *deliveries) round(ctx context.Context, events int, counts bool) error {
	const mostMaking = 8 * time.Second // a delivery attempt times out after 10
	d.receiver.begin(events * d.endpoints)
	d.receiver.block()
	begun := time.Now()
	making, makingCtx := errgroup.WithContext(ctx)
	making.SetLimit(d.conns)
	for range events {
		making.Go(func() error {
			_, err := d.api.simulate(makingCtx, d.inboxID, "event")
			return err
		})
	}
	err := making.Wait()
	made := time.Since(begun)
	cpu, open := d.running.CPU(), time.Now()
	d.receiver.unblock()
	if err != nil {
		return err
	}
	if made > mostMaking {
		return fmt.Errorf("creating %d events took %v: use a smaller -n", events, made)
	}
	if err := d.receiver.await(ctx); err != nil {
		return err
	}
	took := time.Since(open)
	if counts {
		posts := float64(events * d.endpoints)
		d.rates = append(d.rates, posts/took.Seconds())
		d.cpu = append(d.cpu, float64((d.running.CPU()-cpu).Microseconds())/posts)
	}
	return nil
}

// single creates one event and waits until all endpoints have it.
func (d *deliveries) single(ctx context.Context) error {
	d.receiver.begin(d.endpoints)
	begun := time.Now()
	if _, err := d.api.simulate(ctx, d.inboxID, "single"); err != nil {
		return err
	}
	made := time.Now()
	if err := d.receiver.await(ctx); err != nil {
		return err
	}
	last := d.receiver.lastPost()
	d.latencies = append(d.latencies, last.Sub(begun))
	d.behind = append(d.behind, max(last.Sub(made), 0))
	return nil
}

func (d *deliveries) print() {
	slices.Sort(d.rates)
	slices.Sort(d.cpu)
	slices.Sort(d.latencies)
	slices.Sort(d.behind)
	fmt.Printf("%s, %d endpoints, %d rounds of %d events\n", d.engine, d.endpoints, d.rounds, d.events)
	fmt.Printf("%.0f deliveries a second (%.0f to %.0f), %.0f µs of the service's CPU each\n",
		d.rates[len(d.rates)/2], d.rates[0], d.rates[len(d.rates)-1], d.cpu[len(d.cpu)/2])
	fmt.Printf("%d events one by one, from the call to the last post: p50 %.1f ms, p90 %.1f ms, p99 %.1f ms; from its response: p50 %.1f ms, p99 %.1f ms\n",
		d.singles, d.latencies.at(0.5), d.latencies.at(0.9), d.latencies.at(0.99), d.behind.at(0.5), d.behind.at(0.99))
}
