package faults_test

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// call is one system call as strace shows it.
type call struct {
	name   string
	file   string // what its first descriptor stands for: a path, or TCP:[here->there]
	data   string // bytes written, or read
	args   string // all that is shown
	result int    // known at its end
}

// event is the beginning or the end of a call, in the order in which the kernel
// saw them.
type event struct {
	*call
	end bool
}

var (
	callForm    = regexp.MustCompile(`^(\w+)\((.*)$`)
	resumedForm = regexp.MustCompile(`^<\.\.\. (\w+) resumed>(.*)$`)
	resultForm  = regexp.MustCompile(`\)\s+= (-?\d+)[^"]*$`)
	fileForm    = regexp.MustCompile(`^\d+<((?:->|[^>])*)>`)
)

const unfinished = " <unfinished ...>"

// readTrace hands the events of a trace, made with -f -yy, to take.
func readTrace(r io.Reader, take func(event)) error {
	running := map[string]*call{} // by thread
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF { //nolint:errorlint // as bufio returns it
			return nil
		}
		if err != nil {
			return err
		}
		thread, what, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		what = strings.TrimLeft(what, " ")
		if !ok || strings.HasPrefix(what, "---") || strings.HasPrefix(what, "+++") {
			continue
		}
		if err := readCall(what, thread, running, take); err != nil {
			return fmt.Errorf("line %d of the trace: %w: %.200s", n, err, line)
		}
	}
}

func readCall(what, thread string, running map[string]*call, take func(event)) error {
	if found := resumedForm.FindStringSubmatch(what); found != nil {
		c := running[thread]
		if c == nil || c.name != found[1] {
			return fmt.Errorf("%s goes on and never began", found[1])
		}
		delete(running, thread)
		return c.finish(found[2], take)
	}
	found := callForm.FindStringSubmatch(what)
	if found == nil {
		return fmt.Errorf("not a call")
	}
	c := &call{name: found[1], args: found[2]}
	if f := fileForm.FindStringSubmatch(found[2]); f != nil {
		c.file = f[1]
	}
	if args, open := strings.CutSuffix(c.args, unfinished); open {
		running[thread] = c
		if err := c.read(args); err != nil {
			return err
		}
		take(event{c, false})
		return nil
	}
	if err := c.read(c.args); err != nil {
		return err
	}
	take(event{c, false})
	return c.finish("", take)
}

// finish ends a call, of which rest was shown after its beginning.
func (c *call) finish(rest string, take func(event)) error {
	if rest != "" {
		c.args += rest
		if err := c.read(rest); err != nil {
			return err
		}
	}
	found := resultForm.FindStringSubmatch(c.args)
	if found == nil {
		c.result = -1 // the process ended in it
	} else if n, err := strconv.Atoi(found[1]); err == nil {
		c.result = n
	}
	take(event{c, true})
	return nil
}

// read takes the bytes, if any are shown.
func (c *call) read(args string) error {
	begin := strings.IndexByte(args, '"')
	if begin < 0 || c.data != "" {
		return nil
	}
	var b strings.Builder
	for i := begin + 1; i < len(args); i++ {
		switch args[i] {
		case '"':
			c.data = b.String()
			return nil
		case '\\':
			n := escape(args[i+1:], &b)
			if n == 0 {
				return fmt.Errorf("an escape that is unknown: %.5s", args[i:])
			}
			i += n
		default:
			b.WriteByte(args[i])
		}
	}
	return fmt.Errorf("a string without an end")
}

// escapes are those of C that are not octal.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'v': '\v', 'f': '\f', '"': '"', '\\': '\\'}

// escape writes the byte that stands behind a backslash, and returns in how
// many letters.
func escape(s string, b *strings.Builder) int {
	if s == "" {
		return 0
	}
	if plain, ok := escapes[s[0]]; ok {
		b.WriteByte(plain)
		return 1
	}
	n, value := 0, 0
	for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		value = 8*value + int(s[n]-'0')
		n++
	}
	if n > 0 {
		b.WriteByte(byte(value)) //nolint:gosec // three octal digits of one byte
	}
	return n
}
