package faults_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// sector is the unit that a disk writes whole: a power cut tears a write only between
// sectors.
const sector = 512

// powerDisk is a disk in memory with a volatile cache. Processes see every change at
// once. A change is durable once its file, or its folder, is synced. cut drops, keeps
// or tears each change that is not durable.
//
// It promises no more than POSIX does: the name of a new file is durable after a sync
// of its folder, and not after a sync of the file, unless namesWithFiles is set.
type powerDisk struct {
	// namesWithFiles makes a sync of a file also make its name durable, as ext4, XFS
	// and Btrfs do. PostgreSQL relies on it.
	namesWithFiles bool

	mu      sync.Mutex
	rng     *rand.Rand
	root    *object
	objects uint64        // created so far
	renames []*nameChange // that are not durable, oldest first
	lost    powerLoss
	failIn  int // the number of writes and syncs until one fails; 0: none does

	refused string // the path below which every change fails with refusal
	refusal syscall.Errno
}

// object is a file or a folder.
type object struct {
	number   uint64
	mode     uint32 // with the type
	uid, gid uint32
	changed  time.Time

	// Of a file: what processes see, what is durable, and what lies between them.
	data, durable []byte
	pending       []fileChange

	// Of a folder.
	names, durableNames map[string]*object
}

// fileChange is one write, or a change of size if data is nil.
type fileChange struct {
	at   int64 // offset, or size
	data []byte
}

// nameChange sets entries of folders. A nil object removes the name.
type nameChange struct {
	entries []nameEntry // more than one of a rename, which is atomic
}

type nameEntry struct {
	folder *object
	name   string
	object *object
}

// powerLoss counts what cuts did to changes that were not durable.
type powerLoss struct{ cuts, kept, dropped, torn, names, namesDropped, failed int }

func newPowerDisk(rng *rand.Rand) *powerDisk {
	d := &powerDisk{rng: rng, refused: "no such path"}
	d.root = d.create(modeFolder | 0o700)
	return d
}

// create returns a new object that has no name yet. The caller holds the lock, or owns
// the disk.
func (d *powerDisk) create(mode uint32) *object {
	d.objects++
	o := &object{number: d.objects, mode: mode, changed: time.Now()}
	if o.folder() {
		o.names, o.durableNames = map[string]*object{}, map[string]*object{}
	}
	return o
}

func (o *object) folder() bool { return o.mode&modeType == modeFolder }

// apply makes the change on data, and returns the new data.
func (c fileChange) apply(data []byte) []byte {
	if c.data == nil {
		return resize(data, c.at)
	}
	data = resize(data, max(int64(len(data)), c.at+int64(len(c.data))))
	copy(data[c.at:], c.data)
	return data
}

func resize(data []byte, size int64) []byte {
	switch n := size - int64(len(data)); {
	case n > 0:
		return append(data, make([]byte, n)...)
	case n == 0:
		return data
	}
	return data[:size:size] // what grows again later begins with zeros
}

// change changes a file.
func (d *powerDisk) change(o *object, c fileChange) {
	c.data = bytes.Clone(c.data)
	o.data = c.apply(o.data)
	o.pending = append(o.pending, c)
	o.changed = time.Now()
}

// name changes entries of folders, at once.
func (d *powerDisk) name(entries ...nameEntry) {
	for _, e := range entries {
		setName(e.folder.names, e)
		e.folder.changed = time.Now()
	}
	d.renames = append(d.renames, &nameChange{entries})
}

func setName(names map[string]*object, e nameEntry) {
	if e.object == nil {
		delete(names, e.name)
	} else {
		names[e.name] = e.object
	}
}

func (c *nameChange) commit() {
	for _, e := range c.entries {
		setName(e.folder.durableNames, e)
	}
}

// fails counts a write or a sync, and reports whether it has to fail.
func (d *powerDisk) fails() bool {
	if d.failIn == 0 {
		return false
	}
	d.failIn--
	if d.failIn == 0 {
		d.lost.failed++
		return true
	}
	return false
}

// forget ends a sync that failed: what it should have written is never written, and no
// later sync of the file says so. Linux does the same.
func (d *powerDisk) forget(o *object) { o.pending = nil }

// sync makes a file or a folder durable.
func (d *powerDisk) sync(o *object) {
	for _, c := range o.pending {
		o.durable = c.apply(o.durable)
	}
	o.pending = nil
	if o.folder() || d.namesWithFiles {
		d.syncNames(o)
	}
}

// syncNames makes the latest change that concerns an object durable, and all before it:
// a file system that writes a journal keeps their order.
func (d *powerDisk) syncNames(o *object) {
	last := 0
	for i, c := range d.renames {
		for _, e := range c.entries {
			if e.folder == o || e.object == o {
				last = i + 1
			}
		}
	}
	for _, c := range d.renames[:last] {
		c.commit()
	}
	d.renames = d.renames[last:]
}

// cut cuts the power: of what is not durable, the oldest changes of names and any
// changes of files survive. The caller has made sure that no process uses the disk.
func (d *powerDisk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost.cuts++
	d.failIn = 0
	kept := d.rng.IntN(len(d.renames) + 1)
	for _, c := range d.renames[:kept] {
		c.commit()
	}
	d.lost.names += len(d.renames)
	d.lost.namesDropped += len(d.renames) - kept
	d.renames = nil
	d.restore(d.root)
}

// restore gives an object, and all in it, the content that survives the cut.
func (d *powerDisk) restore(o *object) {
	for _, c := range o.pending {
		d.survive(o, c)
	}
	o.pending = nil
	if !o.folder() {
		o.data = bytes.Clone(o.durable)
		return
	}
	clear(o.names)
	for name, child := range o.durableNames {
		o.names[name] = child
		d.restore(child)
	}
}

// survive keeps, drops or tears one change of a file.
func (d *powerDisk) survive(o *object, c fileChange) {
	switch d.rng.IntN(3) {
	case 0:
		d.lost.kept++
		o.durable = c.apply(o.durable)
	case 1:
		d.lost.dropped++
	default:
		if c.data == nil {
			d.lost.dropped++
			return
		}
		d.lost.torn++
		for at := int64(0); at < int64(len(c.data)); {
			end := min(int64(len(c.data)), (c.at+at)/sector*sector+sector-c.at)
			if d.rng.IntN(2) == 0 {
				o.durable = fileChange{c.at + at, c.data[at:end]}.apply(o.durable)
			}
			at = end
		}
	}
}
