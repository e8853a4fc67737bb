package faults_test

import (
	"path"
	"strings"
)

// blobTrace follows the blob folder. A blob is safe when an fsync of its file
// has ended that began after the last write, and then, one of the folder that
// began after it was renamed in it, and one of the folder above that began
// after that folder was made.
type blobTrace struct {
	changes map[string]int // of a file or folder so far
	synced  map[string]int // those of them that are on the disk
	syncing map[*call]int  // changes, when it began

	file    map[string]string // of a mark
	renamed map[string]int    // the change of the folder that a file's name was
	made    map[string]int    // the change of the folder above that a folder was
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

// missing says what keeps the blob of a mark from being safe; nothing when it
// is, or when there is none.
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
