package faults_test

import (
	"path"
	"strings"
)

// blobTrace follows the blob folder. A blob is durable when three fsyncs have ended:
// one of its file, begun after the last write; one of the folder, begun after the
// file was renamed in it; and one of the parent folder, begun after the folder was
// created.
type blobTrace struct {
	changes map[string]int // so far, by file or folder
	synced  map[string]int // changes that are on the disk
	syncing map[*call]int  // changes when the call began

	file    map[string]string // by mark
	renamed map[string]int    // the change of the folder that named the file
	made    map[string]int    // the change of the parent that created the folder
}

func newBlobTrace() *blobTrace {
	return &blobTrace{
		changes: map[string]int{}, synced: map[string]int{}, syncing: map[*call]int{},
		file: map[string]string{}, renamed: map[string]int{}, made: map[string]int{},
	}
}

func (b *blobTrace) take(e event) {
	if !strings.Contains(e.file+"/", "/blobs/") {
		return
	}
	switch {
	case isSync(e.name) && !e.end:
		b.syncing[e.call] = b.changes[e.file]
	case isSync(e.name):
		if e.result == 0 {
			b.synced[e.file] = max(b.synced[e.file], b.syncing[e.call])
		}
		delete(b.syncing, e.call)
	case !e.end || e.result < 0:
	case e.name == "write":
		b.changes[e.file]++
		for _, m := range findMarks(e.text) {
			b.file[m] = e.file
		}
	case e.name == "mkdirat":
		b.changes[e.file]++
		b.made[path.Join(e.file, e.text)] = b.changes[e.file]
	case strings.HasPrefix(e.name, "rename"):
		b.changes[e.file]++
		b.renamed[path.Join(e.file, e.text)] = b.changes[e.file]
	}
}

// missing says why the blob of a mark is not durable yet. It returns an empty string
// when the blob is durable or the mark has none.
func (b *blobTrace) missing(mark string) string {
	file, large := b.file[mark]
	dir := path.Dir(file)
	switch {
	case !large:
		return ""
	case b.synced[file] < b.changes[file]:
		return "its blob is not on the disk"
	case b.renamed[file] == 0:
		return "its blob has no name yet"
	case b.synced[dir] < b.renamed[file]:
		return "the name of its blob is not on the disk"
	case b.synced[path.Dir(dir)] < b.made[dir]:
		return "the folder of its blob is not on the disk"
	}
	return ""
}
