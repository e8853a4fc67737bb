package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Lock file and temporary folder in the data folder.
const (
	lockFile   = "lock"
	tempFolder = "tmp"
)

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked")

// claim holds the locks of a serving process. The system releases them when the
// process ends, even after a crash; the files remain.
type claim struct {
	locks []*os.File
	// temp is a folder for temporary files, used only by this process.
	temp string
}

// claim prevents two `serve` processes from using one SQLite file, or one data
// folder with two databases: the second would delete the first one's blobs as
// orphans. Nodes on PostgreSQL may share a data folder and its blobs.
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

// takeTemp locks the first free numbered folder in dir.
func (cl *claim) takeTemp(dir string) error {
	for i := 0; ; i++ {
		cl.temp = filepath.Join(dir, strconv.Itoa(i))
		if err := cl.lock(cl.temp+".lock", true); !errors.Is(err, errLocked) {
			return err
		}
	}
}

// lock locks the file at path until release. It creates the file and its folder
// if they are missing.
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
