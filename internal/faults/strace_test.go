package faults_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// call is one system call in the output of strace.
type call struct {
	name   string
	file   string // the file of its first descriptor: a path, or TCP:[local->remote]
	text   string // its first string, with the escapes of strace
	args   string // the complete arguments
	result int    // set at its end
}

// event is the beginning or the end of a call. Events come in the kernel's order.
type event struct {
	*call
	end bool
}

var errTrace = errors.New("not a line of a trace")

// readTrace passes the events of a trace, made with -f -yy, to take.
func readTrace(r io.Reader, take func(event)) error {
	running := map[string]*call{} // by thread
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		thread, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		what = strings.TrimLeft(what, " ")
		if strings.HasPrefix(what, "---") || strings.HasPrefix(what, "+++") {
			continue // a signal, or the end of a thread
		}
		if err := readCall(what, thread, running, take); err != nil {
			return fmt.Errorf("line %d: %w: %.200s", n, err, line)
		}
	}
}

// readCall reads a complete call, its beginning or its end.
func readCall(what, thread string, running map[string]*call, take func(event)) error {
	if rest, is := strings.CutPrefix(what, "<... "); is {
		name, rest, _ := strings.Cut(rest, " resumed>")
		c := running[thread]
		if c == nil || c.name != name {
			return errTrace
		}
		delete(running, thread)
		c.args += rest
		return c.finish(take)
	}
	name, args, ok := strings.Cut(what, "(")
	if !ok {
		return errTrace
	}
	args, open := strings.CutSuffix(args, " <unfinished ...>")
	c := &call{name: name, args: args}
	c.file = firstFile(args)
	if err := c.findText(); err != nil {
		return err
	}
	take(event{c, false})
	if open {
		running[thread] = c
		return nil
	}
	return c.finish(take)
}

// finish ends a call whose output is complete.
func (c *call) finish(take func(event)) error {
	if err := c.findText(); err != nil {
		return err
	}
	c.result = -1 // also when the process ended during the call
	if i := strings.LastIndex(c.args, ") "); i >= 0 {
		result := strings.TrimLeft(c.args[i+1:], " =")
		result, _, _ = strings.Cut(result, " ")
		if n, err := strconv.Atoi(result); err == nil {
			c.result = n
		}
	}
	take(event{c, true})
	return nil
}

// firstFile returns the file of the first argument, as in 7</data/x> or
// 9<TCP:[127.0.0.1:25->127.0.0.1:4000]>.
func firstFile(args string) string {
	args = strings.TrimLeft(args, "0123456789")
	if !strings.HasPrefix(args, "<") {
		return ""
	}
	for i := 1; i < len(args); i++ {
		if args[i] == '>' && args[i-1] != '-' {
			return args[1:i]
		}
	}
	return ""
}

// findText finds the first string, if strace has shown one yet.
func (c *call) findText() error {
	begin := strings.IndexByte(c.args, '"') + 1
	if begin == 0 || c.text != "" {
		return nil
	}
	for at := begin; ; at++ {
		quote := strings.IndexByte(c.args[at:], '"')
		if quote < 0 {
			return errTrace
		}
		at += quote
		before := strings.TrimRight(c.args[begin:at], `\`)
		if (at-begin-len(before))%2 == 0 { // the quote is not escaped
			c.text = c.args[begin:at]
			return nil
		}
	}
}

// unescape resolves the octal and C escapes of a string.
func unescape(text string) ([]byte, error) {
	named := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'v': '\v', 'f': '\f', '"': '"', '\\': '\\'}
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b = append(b, text[i])
			continue
		}
		i++
		if i == len(text) {
			return nil, errTrace
		}
		if c, ok := named[text[i]]; ok {
			b = append(b, c)
			continue
		}
		digits := 0
		for digits < 3 && i+digits < len(text) && '0' <= text[i+digits] && text[i+digits] <= '7' {
			digits++
		}
		n, err := strconv.ParseUint(text[i:i+digits], 8, 8)
		if err != nil {
			return nil, errTrace
		}
		b, i = append(b, byte(n)), i+digits-1
	}
	return b, nil
}
