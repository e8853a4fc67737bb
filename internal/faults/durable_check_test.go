package faults_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines of a trace: an incoming message, a WAL frame that does not end its
// transaction and one that does, a page, syncs, and responses.
const (
	traceMail    = `11 read(9<TCP:[127.0.0.1:25->127.0.0.1:4000]>, "Subject: durable-000001-end\r\n", 4096) = 29`
	traceCall    = `11 read(9<TCP:[127.0.0.1:80->127.0.0.1:4001]>, "once-000001-end {\"name\":\"durable-000001-end\"}", 4096) = 45`
	traceHeader  = `12 pwrite64(7</data/x.db-wal>, "\0\0\0\3\0\0\0\0\333\322\364\276\233\214o\"nc\342\233V\225\374\34", 24, 32) = 24`
	traceCommit  = `12 pwrite64(7</data/x.db-wal>, "\0\0\0%\0\0\0(\333\322\364\276\233\214o\"\25\302\v\366>\317'\200", 24, 32) = 24`
	tracePage    = `12 pwrite64(7</data/x.db-wal>, "\r\0\0\0\4\17durable-000001-end once-000001-end\0\17", 4096, 56) = 4096`
	traceWhole   = `12 pwrite64(7</data/x.db-wal>, "\0\0\0%\0\0\0(\333\322\364\276\233\214o\"\25\302\v\366>\317'\200\r\0\0\0\4\17durable-000001-end", 4120, 32) = 4120`
	traceMany    = `12 pwrite64(7</data/x.db-wal>, "\0\0\0\3\0\0\0\0\333\322\364\276\233\214o\"nc\342\233V\225\374\34\r\0\0\0\4\17durable-000001-end", 4120, 32) = 4120`
	traceOther   = `12 pwrite64(7</data/x.db-wal>, "\r\0\0\0\4\17 once-000001-end and what is on every page", 4096, 56) = 4096`
	traceMark    = `12 pwrite64(7</data/x.db-wal>, "\r\0\0\0\4\17 durable-000001-end alone on its page", 4096, 56) = 4096`
	traceSync    = `12 fsync(7</data/x.db-wal>) = 0`
	traceSyncEIO = `12 fsync(7</data/x.db-wal>) = -1 EIO (Input/output error)`
	traceBegins  = `13 fsync(7</data/x.db-wal> <unfinished ...>`
	traceEnds    = `13 <... fsync resumed>)              = 0`
	trace250     = `11 write(9<TCP:[127.0.0.1:25->127.0.0.1:4000]>, "250 2.0.0 OK: queued\r\n", 22) = 22`
	trace201     = `11 write(9<TCP:[127.0.0.1:80->127.0.0.1:4001]>, "HTTP/1.1 201 Created\r\n\r\n", 24) = 24`

	traceBlob     = `11 write(8</data/blobs/ab/tmp-1>, "Subject: durable-000001-end\r\n", 29) = 29`
	traceBlobSync = `11 fsync(8</data/blobs/ab/tmp-1>) = 0`
	traceRename   = `11 renameat(6</data/blobs/ab>, "tmp-1", 6</data/blobs/ab>, "1") = 0`
	traceDirSync  = `11 fsync(6</data/blobs/ab>) = 0`
	traceMkdir    = `11 mkdirat(5</data/blobs>, "ab", 0700) = 0`
	traceRootSync = `11 fsync(5</data/blobs>) = 0`

	traceBegin    = `12 write(4<UNIX-STREAM:[1->2]>, "Q\0\0\0\nBEGIN\0", 11) = 11`
	traceInsert   = `12 write(4<UNIX-STREAM:[1->2]>, "B\0\0\0\0INSERT durable-000001-end", 30) = 30`
	traceSelect   = `12 write(4<UNIX-STREAM:[1->2]>, "B\0\0\0\0SELECT durable-000001-end", 30) = 30`
	traceAsks     = `12 write(4<UNIX-STREAM:[1->2]>, "Q\0\0\0\vCOMMIT\0", 12) = 12`
	traceConfirms = `12 read(4<UNIX-STREAM:[1->2]>, "C\0\0\0\vCOMMIT\0Z\0\0\0\5I", 4096) = 18`
	traceRefuses  = `12 read(4<UNIX-STREAM:[1->2]>, "E\0\0\0\vdeadlock", 4096) = 18`
)

// TestDurabilityFindsFaults shows that the check of traces can fail.
func TestDurabilityFindsFaults(t *testing.T) {
	t.Parallel()
	const notOnDisk = "[durable-000001-end] got 250, and no fsync of the log has ended since it was written"
	tests := []struct {
		name  string
		rows  database
		trace []string
		want  []string
	}{
		{"mail on the disk", newWALTrace(), []string{traceMail, traceHeader, tracePage, traceCommit, traceOther, traceSync, trace250}, nil},
		{"mail whose transaction is one write", newWALTrace(), []string{traceMail, traceWhole, traceSync, trace250}, nil},
		{"a write that does not end its transaction", newWALTrace(), []string{traceMail, traceMany, traceSync, trace250}, []string{"[durable-000001-end] got 250, and the transaction has not been written to its end"}},
		{"mail in one write that is not synced", newWALTrace(), []string{traceMail, traceWhole, trace250, traceSync}, []string{notOnDisk}},
		{"mail not synced", newWALTrace(), []string{traceMail, traceCommit, tracePage, trace250, traceSync}, []string{notOnDisk}},
		{"a sync that failed", newWALTrace(), []string{traceMail, traceCommit, tracePage, traceSyncEIO, trace250}, []string{notOnDisk}},
		{
			"a sync that began before the write", newWALTrace(),
			[]string{traceMail, traceBegins, traceCommit, tracePage, traceEnds, trace250},
			[]string{notOnDisk},
		},
		{
			"a sync that ends after the response", newWALTrace(),
			[]string{traceMail, traceCommit, tracePage, traceBegins, trace250, traceEnds},
			[]string{notOnDisk},
		},
		{
			"a transaction without its end", newWALTrace(),
			[]string{traceMail, traceHeader, tracePage, traceSync, trace250},
			[]string{"[durable-000001-end] got 250, and the transaction has not been written to its end"},
		},
		{
			"mail that was not written", newWALTrace(),
			[]string{traceMail, trace250},
			[]string{"[durable-000001-end] got 250, and durable-000001-end was not written"},
		},
		{"a call with its key", newWALTrace(), []string{traceCall, traceCommit, tracePage, traceSync, trace201}, nil},
		{
			"a call whose key comes later", newWALTrace(),
			[]string{traceCall, traceCommit, traceMark, traceSync, traceCommit, traceOther, traceSync, trace201},
			[]string{"[durable-000001-end once-000001-end] got 201, and they were written by two transactions"},
		},
		{
			"a blob on the disk", newWALTrace(),
			[]string{traceMail, traceMkdir, traceRootSync, traceBlob, traceBlobSync, traceRename, traceDirSync, traceCommit, tracePage, traceSync, trace250},
			nil,
		},
		{
			"a blob that is not synced", newWALTrace(),
			[]string{traceMail, traceBlobSync, traceBlob, traceRename, traceDirSync, traceCommit, tracePage, traceSync, trace250},
			[]string{"the row of durable-000001-end is written, and its blob is not on the disk"},
		},
		{
			"a blob that is renamed after its folder was synced", newWALTrace(),
			[]string{traceMail, traceBlob, traceBlobSync, traceDirSync, traceRename, traceCommit, tracePage, traceSync, trace250},
			[]string{"the row of durable-000001-end is written, and the name of its blob is not on the disk"},
		},
		{
			"a blob in a folder that is not synced", newWALTrace(),
			[]string{traceMail, traceMkdir, traceBlob, traceBlobSync, traceRename, traceDirSync, traceCommit, tracePage, traceSync, trace250},
			[]string{"the row of durable-000001-end is written, and the folder of its blob is not on the disk"},
		},
		{"a COMMIT that is confirmed", newPGTrace(), []string{traceMail, traceBegin, traceInsert, traceAsks, traceConfirms, trace250}, nil},
		{
			"a COMMIT that is not confirmed yet", newPGTrace(),
			[]string{traceMail, traceBegin, traceInsert, traceAsks, trace250, traceConfirms},
			[]string{"[durable-000001-end] got 250, and the server has not confirmed the COMMIT"},
		},
		{
			"a COMMIT that fails", newPGTrace(),
			[]string{traceMail, traceBegin, traceInsert, traceAsks, traceRefuses, traceConfirms, trace250},
			[]string{"[durable-000001-end] got 250, and the server has not confirmed the COMMIT"},
		},
		{
			"a question only", newPGTrace(),
			[]string{traceMail, traceSelect, traceBegin, traceAsks, traceConfirms, trace250},
			[]string{"[durable-000001-end] got 250, and durable-000001-end was not written"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDurability(tt.rows, "127.0.0.1:25", "127.0.0.1:80")
			if err := readTrace(strings.NewReader(strings.Join(tt.trace, "\n")+"\n"), d.take); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.faults); diff != "" {
				t.Error(diff)
			}
		})
	}
}
