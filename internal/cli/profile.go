package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/postroom/postroom/client"
)

// ProfileEnv names the profile of commands that call a server.
const ProfileEnv = "POSTROOM_PROFILE"

const (
	profileFlag    = "profile"
	defaultProfile = "default"
)

// profile is a server and the key to it.
type profile struct {
	Server string `json:"server"`
	Key    string `json:"key"`
}

// profiles are the content of the file that login writes.
type profiles struct {
	Current string             `json:"current"`
	All     map[string]profile `json:"profiles"`
}

// profilesFile returns the file in the user's configuration folder: on Linux
// $XDG_CONFIG_HOME/postroom/profiles.json.
func profilesFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "postroom", "profiles.json"), nil
}

// readProfiles returns the profiles in the file, or none without a file.
func readProfiles() (profiles, error) {
	all := profiles{All: map[string]profile{}}
	path, err := profilesFile()
	if err != nil {
		return all, nil //nolint:nilerr // a system without a configuration folder has no profiles
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return all, fmt.Errorf("read the profiles of %s: %w", path, err)
	}
	return all, nil
}

// save replaces the file. Only the user can read it, since it has keys.
func (all profiles) save() (path string, err error) {
	if path, err = profilesFile(); err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return "", err
	}
	return path, writeFile(path, append(b, '\n'))
}

// access returns the server and the key of a command. Flags come before the
// environment, and the environment before the current profile. A profile that is
// named comes before the environment. The key of a profile is sent to the server of
// the profile only.
func (p Program) access(cmd *cobra.Command) (profile, error) {
	vars := env.ToMap(p.Environ)
	flag := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	given := profile{Server: flag(serverFlag), Key: flag(keyFlag)}
	name := cmp.Or(flag(profileFlag), vars[ProfileEnv])
	if name == "" {
		given = profile{cmp.Or(given.Server, vars[ServerEnv]), cmp.Or(given.Key, vars[KeyEnv])}
	}
	if given.Key != "" && name == "" {
		given.Server = cmp.Or(given.Server, defaultServer)
		return given, nil
	}
	all, err := readProfiles()
	if err != nil {
		return profile{}, err
	}
	chosen, ok := all.All[cmp.Or(name, all.Current)]
	if name != "" && !ok {
		return profile{}, UsageError{fmt.Errorf("profile %s not found: `postroom login --profile %s` makes it", name, name)}
	}
	if ok && given.Key == "" && given.Server != "" && given.Server != chosen.Server {
		if name != "" {
			return profile{}, UsageError{fmt.Errorf("profile %s is for %s: set --%s for another server", name, chosen.Server, keyFlag)}
		}
		chosen = profile{}
	}
	found := profile{cmp.Or(given.Server, chosen.Server, defaultServer), cmp.Or(given.Key, chosen.Key)}
	if found == (profile{Server: defaultServer}) && devRuns(cmd.Context()) {
		return profile{"http://" + DevAddress, DevKey}, nil
	}
	if found.Key == "" {
		return profile{}, UsageError{errors.New("no key: run `postroom login`, or set " + KeyEnv + " or --" + keyFlag + "; " + howToGetAKey)}
	}
	return found, nil
}

// devRuns reports whether something listens at the address of `postroom dev`.
func devRuns(ctx context.Context) bool {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", DevAddress)
	return err == nil && c.Close() == nil
}

func (p Program) loginCommand() *cobra.Command {
	var name, key string
	cmd := &cobra.Command{
		Use:   "login [SERVER]",
		Short: "Keep the address and key of a server in a profile for the other commands",
		Long: "Keep the address and key of a server in a profile, and make it the current one. The key is\n" +
			"read from standard input, checked at the server, and stored in a file that only you can read.\n\n" +
			"Other commands use the current profile, or the one in --profile or " + ProfileEnv + ".",
		Example: "  postroom login https://mail.example.com\n  postroom key create --name laptop | postroom login --profile local",
	}
	cmd.Flags().StringVar(&name, profileFlag, defaultProfile, "name of the profile")
	cmd.Flags().StringVar(&key, keyFlag, "", "API key (default: read from standard input)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		server := cmp.Or(append(args, env.ToMap(p.Environ)[ServerEnv], defaultServer)...)
		if key == "" {
			var err error
			if key, err = p.askKey(); err != nil {
				return err
			}
		}
		return p.login(cmd.Context(), name, profile{strings.TrimRight(server, "/"), key})
	}
	return cmd
}

// askKey reads a key from standard input: the last word of the first line, since
// `postroom key create` writes it there.
func (p Program) askKey() (string, error) {
	if in, isFile := p.Stdin.(*os.File); isFile && p.Interactive {
		if _, err := fmt.Fprint(p.Stderr, "API key: "); err != nil {
			return "", err
		}
		key, err := term.ReadPassword(int(in.Fd()))
		_, _ = fmt.Fprintln(p.Stderr) // the line break that was not shown
		return strings.TrimSpace(string(key)), err
	}
	line, err := bufio.NewReader(p.Stdin).ReadString('\n')
	words := strings.Fields(line)
	if len(words) == 0 {
		return "", UsageError{errors.Join(errors.New("no key on standard input; "+howToGetAKey), ignoreEOF(err))}
	}
	return words[len(words)-1], nil
}

func (p Program) login(ctx context.Context, name string, to profile) error {
	a, err := p.connect(to, output{w: p.Stdout, terminal: p.Terminal})
	if err != nil {
		return err
	}
	// Any key can be checked: one without the scope is valid too.
	if _, err := a.GetUsage(ctx); err != nil && !errors.Is(err, client.ErrInsufficientScope) {
		return a.explain(err)
	}
	all, err := readProfiles()
	if err != nil {
		return err
	}
	all.Current, all.All[name] = name, to
	path, err := all.save()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Logged in to %s. Profile %s is in %s.\n", clean(to.Server), clean(name), clean(path))
	return err
}

func (p Program) logoutCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{Use: "logout", Short: "Remove a profile with its key; the key stays valid at the server"}
	cmd.Flags().StringVar(&name, profileFlag, "", "name of the profile (default: the current one)")
	cmd.RunE = func(*cobra.Command, []string) error {
		all, err := readProfiles()
		if err != nil {
			return err
		}
		gone := cmp.Or(name, all.Current)
		if _, ok := all.All[gone]; !ok {
			return fmt.Errorf("profile %s not found", gone)
		}
		delete(all.All, gone)
		if all.Current == gone {
			all.Current = ""
			if rest := slices.Sorted(maps.Keys(all.All)); len(rest) > 0 {
				all.Current = rest[0]
			}
		}
		if _, err := all.save(); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "Removed profile %s.\n", clean(gone))
		return err
	}
	return cmd
}
