package engine

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/disk"
)

// pgView is a transaction that exported its snapshot, which is worth something as
// long as it is open.
type pgView struct{ *sqlx.Tx }

func (v pgView) Close() error { return v.Rollback() }

// Dump lets pg_dump write what one transaction sees, which stays open as the view
// of that moment.
func (d *postgresEngine) Dump(ctx context.Context, path string) (_ View, err error) {
	tx, err := d.read.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	// pg_dump works while this transaction waits.
	if _, err := tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		return nil, err
	}
	var snapshot string
	if err := tx.GetContext(ctx, &snapshot, `SELECT pg_export_snapshot()`); err != nil {
		return nil, err
	}
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	dump, err := d.tool(ctx, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--snapshot="+snapshot, "--file="+path)
	if err != nil {
		return nil, err
	}
	if err := run(dump); err != nil {
		return nil, err
	}
	if err := disk.SyncFile(path); err != nil {
		return nil, err
	}
	again, err := d.reader(ctx, path, os.DevNull)
	if err != nil {
		return nil, err
	}
	return pgView{tx}, run(again)
}

// reader is pg_restore, which writes the statements that make up what is in the
// file at path.
func (d *postgresEngine) reader(ctx context.Context, path, out string) (*exec.Cmd, error) {
	cmd, err := program(ctx, "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--file="+out, path)
	if err != nil {
		return nil, err
	}
	cmd.Env = os.Environ()
	return cmd, nil
}

// Load lets psql do, as one transaction, what pg_restore reads out of the file,
// and the statement. pg_restore alone would commit before that.
func (d *postgresEngine) Load(ctx context.Context, path, then string) error {
	if err := d.wantEmpty(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, err := d.reader(ctx, path, "-")
	if err != nil {
		return err
	}
	write, err := d.tool(ctx, "psql", "--quiet", "--no-psqlrc", "--output="+os.DevNull, "--set=ON_ERROR_STOP=1")
	if err != nil {
		return err
	}
	in, err := write.StdinPipe()
	if err != nil {
		return err
	}
	writing := make(chan error, 1)
	go func() { writing <- run(write) }()
	read.Stdout = in
	_, err = io.WriteString(in, "BEGIN;\n")
	if err == nil {
		err = run(read)
	}
	if err == nil {
		_, err = io.WriteString(in, "\nRESET search_path;\n"+then+"\nCOMMIT;\n")
	}
	if err != nil {
		cancel() // psql goes away without COMMIT
		return errors.Join(err, <-writing)
	}
	return errors.Join(in.Close(), <-writing)
}

// wantEmpty refuses a database that has tables.
func (d *postgresEngine) wantEmpty(ctx context.Context) error {
	const q = `SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'S') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'`
	db, err := d.pool(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it has only read
	var n int
	if err := db.GetContext(ctx, &n, q); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("the database is not empty: it has %d tables and sequences", n)
	}
	return nil
}

// libpqParams are the parameters of an address that PostgreSQL's own programs
// understand. Others are settings of the session, which they take another way.
var libpqParams = []string{
	"sslmode", "sslcert", "sslkey", "sslrootcert", "sslsni", "connect_timeout", "application_name", "host", "port", "user", "dbname",
	"options", "target_session_attrs", "krbsrvname", "service", "passfile",
}

// tool is a program of PostgreSQL that connects to the database. The password is
// not among its arguments, which every user of the machine can read.
func (d *postgresEngine) tool(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return nil, errors.New("the database address is not a URL") // err would show the password
	}
	q := u.Query()
	env := os.Environ()
	password, _ := u.User.Password()
	if p := q.Get("password"); p != "" {
		password = p
	}
	if password != "" {
		env = append(env, "PGPASSWORD="+password)
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	var session []string
	for param, values := range q {
		if slices.Contains(libpqParams, param) {
			continue
		}
		if q.Del(param); param != "password" && param != "binary_parameters" {
			session = append(session, "-c "+param+"="+strings.ReplaceAll(values[0], " ", `\ `))
		}
	}
	if len(session) > 0 {
		slices.Sort(session)
		env = append(env, "PGOPTIONS="+strings.Join(session, " "))
	}
	u.RawQuery = q.Encode()
	cmd, err := program(ctx, name, append(args, "--no-password", "--dbname="+u.String())...)
	if err != nil {
		return nil, err
	}
	cmd.Env = env
	return cmd, nil
}

func program(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("backup and restore of PostgreSQL need its program %s, of the server's version or newer (Debian: apt-get install postgresql-client): %w", name, err)
	}
	return exec.CommandContext(ctx, path, args...), nil //nolint:gosec // one of three names, and options of ours
}

// run runs cmd to its end. The error has what it reported.
func run(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// Check says whether the server would notice damage: it verifies pages as they are read,
// if the cluster has checksums.
func (d *postgresEngine) Check(ctx context.Context) ([]string, error) {
	var broken int64
	if err := d.read.GetContext(ctx, &broken, `SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()`); err != nil {
		return nil, err
	}
	if broken > 0 {
		return []string{fmt.Sprintf("PostgreSQL has found %d damaged pages: see its log", broken)}, nil
	}
	return nil, nil
}
