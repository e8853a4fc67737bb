package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
)

// healthPatience is the timeout of a health check.
const healthPatience = 5 * time.Second

func (p program) healthCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "health", Short: "Check the service on this machine; exit with 0 if it is healthy"}
	return p.onConfig(cmd, func(ctx context.Context, cfg Config, _ []string) error {
		err := askHealth(ctx, string(cfg.HTTP))
		// The image sets the variable, and does not know which command its container runs.
		if errors.Is(err, syscall.ECONNREFUSED) && env.ToMap(p.Environ)[devListenEnv] != "" {
			err = askHealth(ctx, cli.DevAddress)
		}
		if err != nil {
			return err
		}
		return p.printf("ok\n")
	})
}

// askHealth requests /health from the API at this listen address.
func askHealth(ctx context.Context, listens string) error {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/health", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // only the status counts
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the service is unhealthy: %s", res.Status)
	}
	return nil
}
