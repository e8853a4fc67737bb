package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
)

// service is a service of systemd as the packages install it. Its settings are in a file that
// only root reads, and its data belongs to a user that exists while it runs, so a command in a
// shell of root would find neither.
type service struct {
	settings string // the file; without it nothing is installed
	args     []string
	// become replaces the process by a program.
	become func(path string, args, environ []string) error
}

// installed is the service of this machine.
func installed(args []string) service {
	return service{settings: "/etc/postroom.env", args: args, become: become}
}

// serviceData is where the service keeps its data.
const serviceData = "/var/lib/postroom"

// chosen reports whether the caller says which installation a command works on: by a setting,
// or by standing in the folder of one.
func chosen(vars, flags map[string]string) bool {
	for _, name := range []string{"DATA", "DATABASE"} {
		if vars[envPrefix+name] != "" {
			return true
		}
	}
	for _, name := range []string{"data", "database"} {
		if _, ok := flags[name]; ok {
			return true
		}
	}
	_, err := os.Stat("data/postroom.db")
	return err == nil
}

// take runs a command as the user of the installed service, with its settings, unless the
// caller chose another installation. If it does, it does not return nil.
func (s service) take(p program, cmd *cobra.Command, flags map[string]string) error {
	if s.settings == "" || cmd.Name() == "serve" || chosen(env.ToMap(p.Environ), flags) {
		return nil
	}
	f, err := os.Open(s.settings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the settings of the installed service are in %s, which only root reads: use sudo, or name another installation with %sDATA",
			s.settings, envPrefix)
	case err != nil:
		return err
	}
	_ = f.Close() // it was only opened to see whether that works
	run, err := exec.LookPath("systemd-run")
	if err != nil {
		return nil // a machine without systemd has no such service
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.Stderr, "postroom: for the installed service, with %s and %s\n", s.settings, serviceData)
	args := []string{"systemd-run", "--pipe", "--wait", "--quiet", "--collect", "-p", "EnvironmentFile=" + s.settings, "-E", envPrefix + "DATA=" + serviceData}
	if dir, err := os.Getwd(); err == nil {
		args = append(args, "-p", "WorkingDirectory=-"+dir) // unless its user may not be there, as in /root
	}
	if !slices.Contains(withFolders, cmd.CommandPath()) {
		args = append(args, "-p", "DynamicUser=yes", "-p", "User=postroom", "-p", "StateDirectory=postroom")
	}
	args = append(args, self)
	for _, arg := range s.args {
		args = append(args, strings.ReplaceAll(arg, "$", "$$")) // systemd expands variables
	}
	return s.become(run, args, p.Environ)
}

// withFolders are the commands that stay root, because they use a folder of the caller. The
// user of the service can write to none, and has a /tmp of its own, which ends with it.
var withFolders = []string{"postroom backup", "postroom verify"}
