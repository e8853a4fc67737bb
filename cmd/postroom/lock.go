package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked")

// lockFile is the name of the file in the data folder that `serve` locks.
const lockFile = "lock"

// locks are the locks of one serving process. The system gives them back when
// the process ends, however it ends; the files stay.
type locks []*os.File

// lock keeps two `serve` from using one SQLite file, or one data folder with
// two databases: the second would sweep away the large mail of the first. On
// PostgreSQL many nodes may share a data folder, and do share its large mail.
func (c Config) lock() (l locks, err error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	alone := !c.Database.postgres()
	folder := filepath.Join(c.Data, lockFile)
	if l, err = l.take(folder, alone); errors.Is(err, errLocked) {
		return l, fmt.Errorf("the data folder %s is in use by another `postroom serve`: stop that one, or set %sDATA", c.Data, envPrefix)
	} else if err != nil || !alone {
		return l, err
	}
	if err := os.MkdirAll(filepath.Dir(string(c.Database)), 0o700); err != nil {
		return l, fmt.Errorf("make the folder of the database: %w", err)
	}
	if l, err = l.take(string(c.Database)+".lock", true); errors.Is(err, errLocked) {
		return l, fmt.Errorf("the database %s is in use by another `postroom serve`: stop that one, or set %sDATABASE", c.Database, envPrefix)
	}
	return l, err
}

func (l locks) take(path string, alone bool) (locks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return l, fmt.Errorf("open the lock file: %w", err)
	}
	if err := flock(f, alone); err != nil {
		return l, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return append(l, f), nil
}

func (l locks) release() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
