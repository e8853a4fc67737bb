package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// What a claim leaves in the data folder.
const (
	lockFile   = "lock"
	tempFolder = "tmp"
)

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked")

// claim is what one serving process has for itself alone. The system gives the
// locks back when the process ends, however it ends; the files stay.
type claim struct {
	locks []*os.File
	// temp is a folder for temporary files that no other process uses.
	temp string
}

// claim keeps two `serve` from using one SQLite file, or one data folder with
// two databases: the second would sweep away the large mail of the first. On
// PostgreSQL many nodes may share a data folder, and do share its large mail.
func (c Config) claim() (cl *claim, err error) {
	cl = &claim{}
	defer func() {
		if err != nil {
			err = errors.Join(err, cl.release())
		}
	}()
	alone := !c.Database.postgres()
	err = cl.lock(filepath.Join(c.Data, lockFile), alone)
	if errors.Is(err, errLocked) {
		return cl, fmt.Errorf("the data folder %s is in use by another `postroom serve`: stop that one, or set %sDATA", c.Data, envPrefix)
	}
	if err == nil && alone {
		err = cl.lock(string(c.Database)+".lock", true)
	}
	if errors.Is(err, errLocked) {
		return cl, fmt.Errorf("the database %s is in use by another `postroom serve`: stop that one, or set %sDATABASE", c.Database, envPrefix)
	}
	if err == nil {
		err = cl.takeTemp(filepath.Join(c.Data, tempFolder))
	}
	return cl, err
}

// takeTemp takes the first numbered folder in dir that is free.
func (cl *claim) takeTemp(dir string) error {
	for i := 0; ; i++ {
		cl.temp = filepath.Join(dir, strconv.Itoa(i))
		if err := cl.lock(cl.temp+".lock", true); !errors.Is(err, errLocked) {
			return err
		}
	}
}

// lock locks the file at path until release, and makes it and its folder when
// they are missing.
func (cl *claim) lock(path string, alone bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open a lock file: %w", err)
	}
	if err := flock(f, alone); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	cl.locks = append(cl.locks, f)
	return nil
}

func (cl *claim) release() error {
	var errs []error
	for _, f := range cl.locks {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
