package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
)

// webhooks creates the dispatcher and the rules for its destinations.
func (n *node) webhooks(s *store.Store, stats *metrics) (*webhook.Dispatcher, *netguard.Targets, error) {
	targets, err := n.targets()
	if err != nil {
		return nil, nil, err
	}
	d, err := webhook.New(webhook.Config{
		Store: s, Body: handlers.EventBody(s), Shape: dropin.Event, Targets: targets, Agent: "Postroom/" + programVersion(), OnAttempt: stats.posted, Now: n.now, Log: n.log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create webhooks: %w", err)
	}
	return d, targets, nil
}

// targets returns the rules for the URLs of webhooks.
func (n *node) targets() (*netguard.Targets, error) {
	own, err := netguard.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	return netguard.NewTargets(netguard.New(netguard.Config{Allow: n.cfg.WebhookAllow, Own: own}), nil), nil
}

// webhooksPart releases the leases of the previous run before it starts to
// deliver.
func (n *node) webhooksPart(s *store.Store, d *webhook.Dispatcher) part {
	return worker("webhooks", func(ctx context.Context) error {
		err := n.prepare(ctx, "webhooks", func() error {
			_, err := s.ReleaseLeases(ctx, store.WorkDeliveries)
			return err
		})
		if err != nil {
			return err
		}
		return d.Run(ctx)
	})
}
