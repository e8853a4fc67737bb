package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	modeType   = syscall.S_IFMT
	modeFolder = syscall.S_IFDIR
	modeFile   = syscall.S_IFREG
)

// powerMount is a powerDisk at a path, served by a process of its own: a process that
// maps a file of its own file system into memory can wait for itself.
type powerMount struct {
	path    string
	server  *exec.Cmd
	mu      sync.Mutex // of orders
	orders  io.WriteCloser
	replies *bufio.Scanner
	lost    string // what the last cut reported
}

// powerOptions configure the process that serves a disk.
type powerOptions struct {
	Path           string
	Seed           uint64
	NamesWithFiles bool
	Load           string // a folder whose files the disk begins with
}

// powerVariable holds the options in the environment of that process.
const powerVariable = "FAULTS_POWER_DISK"

// newPowerMount mounts a disk at a folder, which has to exist. It skips the test on a
// machine that has no FUSE.
func newPowerMount(t *testing.T, o powerOptions) *powerMount {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no FUSE: %v", err)
	}
	_ = f.Close() // nothing was written
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	m := &powerMount{path: o.Path, server: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])}
	m.server.Env = append(os.Environ(), powerVariable+"="+string(text))
	m.server.Stderr = os.Stderr
	dieWithUs(m.server)
	out, err := m.server.StdoutPipe()
	if err == nil {
		m.orders, err = m.server.StdinPipe()
	}
	if err == nil {
		err = m.server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	m.replies = bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = m.orders.Close() // the server unmounts and ends
		_ = m.server.Wait()
	})
	m.reply(t)
	return m
}

// cut cuts the power, and returns when it is back. All processes that had the disk
// open are gone, or get only errors from now on.
func (m *powerMount) cut(t *testing.T) {
	t.Helper()
	m.order(t, "cut")
}

// fail makes the nth write or sync from now fail once.
func (m *powerMount) fail(t *testing.T, n int) {
	t.Helper()
	m.order(t, "fail "+strconv.Itoa(n))
}

// refuse makes every change below a path of the disk fail with that error. Nothing is
// changed by a call that fails. On a full disk (ENOSPC) files can still be opened, cut
// short and deleted.
func (m *powerMount) refuse(t *testing.T, path string, errno syscall.Errno) {
	t.Helper()
	m.order(t, fmt.Sprintf("refuse %d %s", int(errno), path))
}

// allow ends refuse.
func (m *powerMount) allow(t *testing.T) {
	t.Helper()
	m.refuse(t, "no such path", 0)
}

func (m *powerMount) order(t *testing.T, order string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := io.WriteString(m.orders, order+"\n"); err != nil {
		t.Fatal(err)
	}
	m.reply(t)
}

func (m *powerMount) reply(t *testing.T) {
	t.Helper()
	if !m.replies.Scan() {
		t.Fatalf("the disk at %s ended", m.path)
	}
	if m.lost = m.replies.Text(); strings.HasPrefix(m.lost, "error") {
		t.Fatalf("the disk at %s: %s", m.path, m.lost)
	}
}

// servePower is the process that serves a disk. It ends with its standard input.
func servePower(options string) int {
	var o powerOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return tell(err)
	}
	d := newPowerDisk(rand.New(rand.NewPCG(o.Seed, 0)))
	d.namesWithFiles = o.NamesWithFiles
	if o.Load != "" {
		if err := d.load(o.Load); err != nil {
			return tell(err)
		}
	}
	s, err := mountPower(o.Path, d)
	if err != nil {
		return tell(err)
	}
	fmt.Println("mounted")
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		if n, ok := strings.CutPrefix(orders.Text(), "fail "); ok {
			d.mu.Lock()
			d.failIn, _ = strconv.Atoi(n)
			d.mu.Unlock()
			fmt.Println("ok")
			continue
		}
		if n, path, ok := refuseOrder(orders.Text()); ok {
			d.mu.Lock()
			d.refused, d.refusal = path, n
			d.mu.Unlock()
			fmt.Println("ok")
			continue
		}
		s.end(o.Path)
		d.cut()
		if s, err = mountPower(o.Path, d); err != nil {
			return tell(err)
		}
		fmt.Printf("%+v\n", d.lost)
	}
	s.end(o.Path)
	return 0
}

// refuseOrder parses an order of powerMount.refuse.
func refuseOrder(order string) (n syscall.Errno, path string, ok bool) {
	rest, ok := strings.CutPrefix(order, "refuse ")
	number, path, _ := strings.Cut(rest, " ")
	code, _ := strconv.Atoi(number)
	return syscall.Errno(code), path, ok
}

func tell(err error) int {
	fmt.Println("error:", err)
	return 1
}

// powerSession is one time of having power: every call after its end fails.
type powerSession struct {
	disk   *powerDisk
	off    atomic.Bool
	server *fuse.Server
}

func mountPower(path string, d *powerDisk) (*powerSession, error) {
	s := &powerSession{disk: d}
	never, at := time.Duration(0), time.Second
	server, err := fs.Mount(path, &powerNode{session: s, object: d.root}, &fs.Options{
		MountOptions: fuse.MountOptions{
			AllowOther: os.Geteuid() == 0, DirectMount: os.Geteuid() == 0, FsName: "power", Name: "power",
			DisableXAttrs: true, MaxWrite: 1 << 20,
		},
		EntryTimeout: &never, NegativeTimeout: &never, AttrTimeout: &at, NullPermissions: true,
		RootStableAttr: &fs.StableAttr{Ino: d.root.number, Mode: modeFolder},
	})
	s.server = server
	return s, err
}

// end makes every later call fail, and unmounts the disk, also if processes still have
// it open.
func (s *powerSession) end(path string) {
	s.disk.mu.Lock()
	s.off.Store(true)
	s.disk.mu.Unlock()
	if s.server.Unmount() != nil {
		_ = syscall.Unmount(path, syscall.MNT_DETACH) // the next mount reports what is wrong
	}
}

// powerNode is an object in one session.
type powerNode struct {
	fs.Inode
	session *powerSession
	object  *object
}

// use runs f under the lock of the disk, if there is power.
func (n *powerNode) use(f func(d *powerDisk) syscall.Errno) syscall.Errno {
	d := n.session.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.session.off.Load() {
		return syscall.EIO
	}
	return f(d)
}

// write is use for a change of the object, or of one of its names.
func (n *powerNode) write(f func(d *powerDisk) syscall.Errno, name ...string) syscall.Errno {
	path := filepath.Join(append([]string{n.Path(nil)}, name...)...)
	return n.use(func(d *powerDisk) syscall.Errno {
		if path == d.refused || strings.HasPrefix(path, d.refused+"/") {
			return d.refusal
		}
		return f(d)
	})
}

// frees is write for a change that needs no space.
func (n *powerNode) frees(f func(d *powerDisk) syscall.Errno, name ...string) syscall.Errno {
	errno := n.write(f, name...)
	if errno == syscall.ENOSPC {
		errno = n.use(f)
	}
	return errno
}

func (n *powerNode) child(ctx context.Context, o *object, out *fuse.EntryOut) *fs.Inode {
	fillAttr(o, &out.Attr)
	return n.NewInode(ctx, &powerNode{session: n.session, object: o}, fs.StableAttr{Mode: o.mode & modeType, Ino: o.number})
}

func fillAttr(o *object, a *fuse.Attr) {
	a.Ino, a.Mode, a.Size, a.Nlink = o.number, o.mode, uint64(len(o.data)), 1
	a.Blocks, a.Blksize = (a.Size+sector-1)/sector, 4096
	a.Uid, a.Gid = o.uid, o.gid
	a.SetTimes(&o.changed, &o.changed, &o.changed)
}

func (n *powerNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (in *fs.Inode, errno syscall.Errno) {
	errno = n.use(func(*powerDisk) syscall.Errno {
		o, ok := n.object.names[name]
		if !ok {
			return syscall.ENOENT
		}
		in = n.child(ctx, o, out)
		return 0
	})
	return in, errno
}

func (n *powerNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.use(func(*powerDisk) syscall.Errno {
		fillAttr(n.object, &out.Attr)
		return 0
	})
}

func (n *powerNode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return n.frees(func(d *powerDisk) syscall.Errno {
		o := n.object
		if mode, ok := in.GetMode(); ok {
			o.mode = o.mode&modeType | mode&^modeType
		}
		if uid, ok := in.GetUID(); ok {
			o.uid = uid
		}
		if gid, ok := in.GetGID(); ok {
			o.gid = gid
		}
		if size, ok := in.GetSize(); ok {
			d.change(o, fileChange{at: int64(size)})
		}
		if at, ok := in.GetMTime(); ok {
			o.changed = at
		}
		fillAttr(o, &out.Attr)
		return 0
	})
}

// add creates an object with a name in the folder.
func (n *powerNode) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (in *fs.Inode, errno syscall.Errno) {
	caller, _ := fuse.FromContext(ctx)
	errno = n.write(func(d *powerDisk) syscall.Errno {
		if n.object.names[name] != nil {
			return syscall.EEXIST
		}
		o := d.create(mode)
		if caller != nil {
			o.uid, o.gid = caller.Uid, caller.Gid
		}
		d.name(nameEntry{n.object, name, o})
		in = n.child(ctx, o, out)
		return 0
	}, name)
	return in, errno
}

func (n *powerNode) Create(ctx context.Context, name string, _ uint32, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	in, errno := n.add(ctx, name, modeFile|mode&^modeType, out)
	return in, nil, 0, errno
}

func (n *powerNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.add(ctx, name, modeFolder|mode&^modeType, out)
}

func (n *powerNode) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (in *fs.Inode, errno syscall.Errno) {
	from, ok := target.(*powerNode)
	if !ok {
		return nil, syscall.EXDEV
	}
	errno = n.write(func(d *powerDisk) syscall.Errno {
		if n.object.names[name] != nil {
			return syscall.EEXIST
		}
		d.name(nameEntry{n.object, name, from.object})
		in = n.child(ctx, from.object, out)
		return 0
	}, name)
	return in, errno
}

func (n *powerNode) Unlink(_ context.Context, name string) syscall.Errno {
	return n.frees(func(d *powerDisk) syscall.Errno {
		d.name(nameEntry{n.object, name, nil})
		return 0
	}, name)
}

func (n *powerNode) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.use(func(d *powerDisk) syscall.Errno {
		if o := n.object.names[name]; o != nil && len(o.names) > 0 {
			return syscall.ENOTEMPTY
		}
		d.name(nameEntry{n.object, name, nil})
		return 0
	})
}

func (n *powerNode) Rename(_ context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	const noReplace = 1
	folder, ok := to.(*powerNode)
	if !ok || flags&^noReplace != 0 {
		return syscall.EINVAL
	}
	return n.write(func(d *powerDisk) syscall.Errno {
		if flags&noReplace != 0 && folder.object.names[newName] != nil {
			return syscall.EEXIST
		}
		o := n.object.names[name]
		d.name(nameEntry{n.object, name, nil}, nameEntry{folder.object, newName, o})
		return 0
	}, name)
}

func (n *powerNode) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var list []fuse.DirEntry
	errno := n.use(func(*powerDisk) syscall.Errno {
		for name, o := range n.object.names {
			list = append(list, fuse.DirEntry{Name: name, Ino: o.number, Mode: o.mode})
		}
		return 0
	})
	return fs.NewListDirStream(list), errno
}

func (n *powerNode) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	free := func(*powerDisk) syscall.Errno { return 0 }
	if flags&syscall.O_ACCMODE == syscall.O_RDONLY {
		return nil, 0, n.use(free)
	}
	return nil, 0, n.frees(free)
}

func (n *powerNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	size := 0
	errno := n.use(func(*powerDisk) syscall.Errno {
		if at < int64(len(n.object.data)) {
			size = copy(dest, n.object.data[at:])
		}
		return 0
	})
	return fuse.ReadResultData(dest[:size]), errno
}

func (n *powerNode) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	return uint32(len(data)), n.write(func(d *powerDisk) syscall.Errno {
		if d.fails() {
			return syscall.EIO
		}
		d.change(n.object, fileChange{at, data})
		return 0
	})
}

func (n *powerNode) Allocate(_ context.Context, _ fs.FileHandle, at, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.EOPNOTSUPP
	}
	return n.write(func(d *powerDisk) syscall.Errno {
		if end := int64(at + size); end > int64(len(n.object.data)) {
			d.change(n.object, fileChange{at: end})
		}
		return 0
	})
}

func (n *powerNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return n.use(func(d *powerDisk) syscall.Errno {
		if d.fails() {
			d.forget(n.object)
			return syscall.EIO
		}
		d.sync(n.object)
		return 0
	})
}

func (n *powerNode) Flush(context.Context, fs.FileHandle) syscall.Errno {
	return n.use(func(*powerDisk) syscall.Errno { return 0 })
}

func (n *powerNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 22 // of 4 KiB
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = blocks, blocks, blocks, blocks, blocks
	return 0
}

// load copies a folder of the machine to the disk, as durable.
func (d *powerDisk) load(dir string) error {
	objects := map[string]*object{".": d.root}
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		o := objects[name]
		if o == nil {
			o = d.create(modeFile)
			if e.IsDir() {
				o = d.create(modeFolder)
			}
			folder := objects[filepath.Dir(name)]
			folder.names[filepath.Base(name)], folder.durableNames[filepath.Base(name)] = o, o
			objects[name] = o
		}
		o.mode = o.mode&modeType | uint32(info.Mode().Perm())
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			o.uid, o.gid = s.Uid, s.Gid
		}
		if e.IsDir() {
			return nil
		}
		if o.data, err = os.ReadFile(path); err == nil {
			o.durable = append([]byte(nil), o.data...)
		}
		return err
	})
}
