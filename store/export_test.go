package store

import "context"

// Pragma reads a setting of the connection that writes.
func Pragma(ctx context.Context, s *Store, name string) (string, error) {
	var v string
	err := s.write.GetContext(ctx, &v, "PRAGMA "+name)
	return v, err
}
