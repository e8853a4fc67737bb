package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// share opens conns connections to address and distributes n pieces of work over them.
// do continues for as long as next returns true.
func share(ctx context.Context, n, conns int, address string, do func(conn net.Conn, next func() bool) error) error {
	var (
		left atomic.Int64
		all  sync.WaitGroup
		errs = make([]error, conns)
	)
	left.Store(int64(n))
	next := func() bool { return left.Add(-1) >= 0 && ctx.Err() == nil }
	for i := range conns {
		all.Go(func() {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", address)
			if err == nil {
				err = errors.Join(conn.SetDeadline(time.Now().Add(mostWait)), do(conn, next), conn.Close())
			}
			if errs[i] = err; err != nil {
				left.Store(0) // the others may stop
			}
		})
	}
	all.Wait()
	return errors.Join(errors.Join(errs...), ctx.Err())
}
