package testpg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// Preparation describes what a database contains before a test begins.
type Preparation struct {
	// Version changes whenever Fill would fill the database differently.
	Version string
	// Fill fills the empty database at this address.
	Fill func(ctx context.Context, address string) error
}

// Prepared is like [Schema], but the database is filled by p. A used database is restored
// for the next test: rows that the test added are deleted, and rows of p.Fill are put
// back. That takes a tenth of the time to fill it. When a test has changed the schema, the
// database is filled again.
func Prepared(t testing.TB, p Preparation) string {
	t.Helper()
	return claimed(t, takeUnused, func(ctx context.Context, c *claim) error { return c.prepare(ctx, p) }, keepUnused)
}

// unused are the prepared databases of this process that no test uses. Their sessions stay
// open: half of the time of a short test was spent on new ones.
var unused struct {
	sync.Mutex
	claims []*claim
}

func takeUnused(ctx context.Context, server string) (*claim, error) {
	unused.Lock()
	defer unused.Unlock()
	if n := len(unused.claims); n > 0 {
		c := unused.claims[n-1]
		unused.claims = unused.claims[:n-1]
		return c, nil
	}
	return claimDatabase(ctx, server, preparedDatabases)
}

func keepUnused(ctx context.Context, c *claim) error {
	if err := c.restore(ctx); err != nil {
		return errors.Join(err, c.close())
	}
	unused.Lock()
	defer unused.Unlock()
	unused.claims = append(unused.claims, c)
	return nil
}

// saveSQL records what a database contains, in a schema that the programs under test do
// not see. Parameters: none.
const saveSQL = `
CREATE SCHEMA testpg;

-- catalog returns a checksum of all that DDL can change.
CREATE FUNCTION testpg.catalog() RETURNS text LANGUAGE sql AS $$
	SELECT md5(string_agg(line, E'\n' ORDER BY line)) FROM (
		SELECT concat_ws(' ', 'class', oid, relname, relnatts, reloptions::text, relpersistence) AS line FROM pg_class WHERE relnamespace = 'public'::regnamespace
		UNION ALL SELECT concat_ws(' ', 'column', a.attrelid, a.attname, a.attnotnull, a.attisdropped)
			FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
		UNION ALL SELECT concat_ws(' ', 'constraint', oid, conname, convalidated) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT concat_ws(' ', 'trigger', g.oid, g.tgname, g.tgenabled)
			FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE c.relnamespace = 'public'::regnamespace
		UNION ALL SELECT concat_ws(' ', 'function', oid, md5(prosrc)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT concat_ws(' ', 'schema', nspname) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%'
		UNION ALL SELECT concat_ws(' ', 'setting', setconfig::text) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
	) AS lines
$$;

-- restore removes and adds rows until the tables hold what they held when the
-- database was saved. It returns false when the schema is not the same.
CREATE FUNCTION testpg.restore() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	tab record;
	used text[];
	list text;
	small boolean;
BEGIN
	IF testpg.catalog() <> (SELECT catalog FROM testpg.state) THEN
		RETURN false;
	END IF;
	SELECT string_agg(format('SELECT %L AS name WHERE EXISTS (SELECT 1 FROM %1$s)', oid::regclass), ' UNION ALL '), max(pg_relation_size(oid)) <= 65536
		INTO list, small FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p');
	EXECUTE 'SELECT array_agg(name) FROM (' || list || ') AS tables' INTO used;
	-- Foreign keys are checked at the end of the statement. TRUNCATE takes a tenth of a second for some tables, however small.
	IF small AND used IS NOT NULL THEN
		SELECT string_agg(format('%I AS (DELETE FROM %s)', 'of_' || name, name), ', ') INTO list FROM unnest(used) AS name;
		EXECUTE 'WITH ' || list || ' SELECT';
	ELSIF used IS NOT NULL THEN
		EXECUTE 'TRUNCATE ' || array_to_string(used, ', ') || ' CASCADE';
	END IF;
	FOR tab IN SELECT relname AS name FROM pg_class WHERE relnamespace = 'testpg_rows'::regnamespace AND relkind = 'r' LOOP
		EXECUTE format('INSERT INTO public.%I OVERRIDING SYSTEM VALUE TABLE testpg_rows.%I', tab.name, tab.name);
	END LOOP;
	FOR tab IN
		SELECT s.sequencename AS name, w.last_value AS at FROM pg_sequences s JOIN testpg.sequences w USING (sequencename)
		WHERE s.schemaname = 'public' AND s.last_value IS DISTINCT FROM w.last_value
	LOOP
		IF tab.at IS NULL THEN
			EXECUTE format('ALTER SEQUENCE public.%I RESTART', tab.name);
		ELSE
			PERFORM setval(format('public.%I', tab.name)::regclass, tab.at);
		END IF;
	END LOOP;
	UPDATE testpg.state SET clean = true;
	RETURN true;
END $$;

CREATE TABLE testpg.sequences AS SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public';

CREATE SCHEMA testpg_rows;
DO $$
DECLARE
	tab record;
	used boolean;
BEGIN
	FOR tab IN SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') LOOP
		EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', tab.name) INTO used;
		IF used THEN
			EXECUTE format('CREATE TABLE testpg_rows.%I AS TABLE public.%I', tab.name, tab.name);
		END IF;
	END LOOP;
END $$;

CREATE TABLE testpg.state AS SELECT testpg.catalog() AS catalog, ''::text AS version, false AS clean;
`

// prepare fills the database as p says. After a clean release by the last test, it is
// already filled.
func (c *claim) prepare(ctx context.Context, p Preparation) error {
	const take = `UPDATE testpg.state SET clean = false WHERE clean AND version = $1`
	if saved, err := c.saved(ctx); err != nil {
		return err
	} else if saved {
		res, err := c.db.ExecContext(ctx, take, p.Version)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
	}
	if err := c.empty(ctx); err != nil { // closes the connections of a killed test
		return err
	}
	if err := p.Fill(ctx, c.url); err != nil {
		return fmt.Errorf("fill %s: %w", c.name, err)
	}
	if _, err := c.db.ExecContext(ctx, saveSQL); err != nil {
		return fmt.Errorf("save the contents of %s: %w", c.name, err)
	}
	_, err := c.db.ExecContext(ctx, `UPDATE testpg.state SET version = $1`, p.Version)
	return err
}

// saved reports whether the database has been prepared before.
func (c *claim) saved(ctx context.Context) (saved bool, err error) {
	err = c.db.QueryRowContext(ctx, `SELECT to_regclass('testpg.state') IS NOT NULL`).Scan(&saved)
	return saved, err
}

// restore undoes the changes of the test, so that the next test can use the database. If
// the schema has changed, the database must be filled again.
func (c *claim) restore(ctx context.Context) error {
	if err := c.cut(ctx); err != nil {
		return err
	}
	same, err := c.saved(ctx)
	if err == nil && same {
		err = c.db.QueryRowContext(ctx, `SELECT testpg.restore()`).Scan(&same)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", c.name, err)
	}
	if !same {
		return c.empty(ctx)
	}
	return nil
}
