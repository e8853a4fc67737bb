package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

// program is the environment of the commands.
type program struct {
	cli.Program
	service service
}

// printf prints to the standard output.
func (p program) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format, args...)
	return err
}

// printList prints a table of a list, page by page, with a row of cells for each.
func printList[T any](w io.Writer, header []string, list func(store.Page) (store.List[T], error), row func(T) ([]string, error)) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, strings.Join(header, "\t")) // reported by Flush
	page := store.Page{Limit: 100}
	for {
		l, err := list(page)
		if err != nil {
			return err
		}
		for _, r := range l.Rows {
			cells, err := row(r)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) // as above
		}
		if page.Cursor = l.Cursor; page.Cursor == "" {
			return t.Flush()
		}
	}
}

// Groups of commands in the help.
const (
	ownGroup = "own"
	apiGroup = "api"
)

func newCommand(p program) *cobra.Command {
	root := grouped(&cobra.Command{
		Use:           "postroom",
		Short:         "Mailboxes for programs: receive, wait for messages, send",
		Long:          "Mailboxes for programs: receive, wait for messages, send.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.Version = programVersion()
	root.SetVersionTemplate("postroom {{.Version}}\n")
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	own := []*cobra.Command{
		p.serveCommand(), p.migrateCommand(), p.accountCommand(), p.keyCommand(), p.userCommand(), p.doctorCommand(),
		p.backupCommand(), p.restoreCommand(), p.verifyCommand(), p.heldCommand(), p.maintenanceCommand(), p.healthCommand(), p.configCommand(),
	}
	cli.Group(root, slices.Concat(onInstall(own), inGroup(ownGroup, []*cobra.Command{p.devCommand()}), inGroup(apiGroup, append(p.Commands(), p.inboxCommand(), p.domainCommand())), []*cobra.Command{p.versionCommand()})...)
	root.RunE = func(*cobra.Command, []string) error { return p.printf("%s", firstCommands) }
	markUsageErrors(root)
	return root
}

// firstCommands is what the program says without arguments.
const firstCommands = `Mailboxes for programs: receive, wait for messages, send.

  postroom dev                  run it here for development: in memory, without keys, and no mail leaves
  postroom wait ADDRESS --code  wait for the next message to an address, and print its verification code
  postroom serve                run the service

postroom --help lists all commands.
`

// grouped adds the two groups of commands to the help of cmd.
func grouped(cmd *cobra.Command) *cobra.Command {
	cmd.AddGroup(
		&cobra.Group{ID: apiGroup, Title: cli.GroupTitle},
		&cobra.Group{ID: ownGroup, Title: "Run and manage a server, on its own machine:"})
	return cmd
}

func inGroup(id string, commands []*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	return commands
}

// onInstall adds the settings of an installation as flags to commands and their
// subcommands. Only the help of the first command lists them.
func onInstall(commands []*cobra.Command) []*cobra.Command {
	for i, cmd := range commands {
		for _, s := range settings() {
			cmd.PersistentFlags().String(s.flag, s.def, s.help())
			cmd.PersistentFlags().Lookup(s.flag).Hidden = i > 0
		}
		if i > 0 {
			cmd.SetUsageTemplate(cmd.UsageTemplate() + "\nServer settings: postroom serve --help\n")
		}
	}
	return inGroup(ownGroup, commands)
}

// help returns the description of a setting's flag.
func (s setting) help() string {
	text := s.usage + " [" + s.env + "]"
	if s.def == "" && s.unset != "" {
		text += " (default: " + s.unset + ")"
	}
	return text
}

// config reads the settings from the environment and the flags of cmd.
func (p program) config(cmd *cobra.Command) (Config, error) {
	flags := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { flags[f.Name] = f.Value.String() })
	if err := p.service.take(p, cmd, flags); err != nil {
		return Config{}, err
	}
	return load(p.Environ, flags)
}

// onConfig turns cmd into a command that needs the settings alone.
func (p program) onConfig(cmd *cobra.Command, do func(ctx context.Context, cfg Config, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := p.config(cmd)
		if err != nil {
			return err
		}
		return do(cmd.Context(), cfg, args)
	}
	return cmd
}

func (p program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Run the service until SIGTERM or SIGINT"}
	return p.onConfig(cmd, func(ctx context.Context, cfg Config, _ []string) error {
		return newNode(cfg, p.Stdout, newLogger(cfg, p.Stderr)).Run(ctx)
	})
}

func (p program) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Bring the database schema up to date"}
	return p.onConfig(cmd, func(ctx context.Context, cfg Config, _ []string) error {
		steps, err := cfg.migrate(ctx, newLogger(cfg, p.Stderr))
		if err != nil {
			return err
		}
		return p.printf("The database schema is up to date. Migrations applied: %d.\n", steps)
	})
}

func (p program) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the settings in effect, without secrets"}
	return p.onConfig(cmd, func(ctx context.Context, cfg Config, _ []string) error {
		return cfg.print(p.Stdout)
	})
}

func (p program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		RunE: func(*cobra.Command, []string) error {
			return p.printf("postroom %s\n", programVersion())
		},
	}
}
