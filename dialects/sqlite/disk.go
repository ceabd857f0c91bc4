package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"golang.org/x/sys/unix"
)

// A full disk must not take away what makes room: a delete writes a row before it frees
// any, and so does compaction. So a file beside the database holds some space, the reserve.
// When less than twice the reserve is free, the reserve included, only deletes are taken.
// When the rest is used up, by plinth or another program, the first delete that needs space
// removes the file: deletes have three quarters of its space, compaction the rest. The file
// is made again when there is room.

// DefaultReserve is the size of the reserve, unless that is more than a twentieth of the
// file system.
const DefaultReserve = 16 << 20

// disk watches the space on the file system of a database.
type disk struct {
	path string // of the reserve
	// growth returns how much the file will grow by at the next checkpoint; nil: not at all.
	growth func() int64

	mu   sync.Mutex
	size int64 // of the reserve; 0: there is none and the disk is not watched
	held bool
	full bool  // only deletes are taken
	free int64 // at the last look, less what was spent since
}

// newDisk returns the disk of the database at path. If there is no room, newDisk removes the
// reserve at once, because a start needs space, too. size is 0 for the default, negative
// for none.
func newDisk(path string, size int64) *disk {
	d := &disk{path: path + ".reserve", size: size}
	if size < 0 {
		d.size = 0
		_ = os.Remove(d.path) // of an earlier start
		return d
	}
	if size == 0 {
		d.size = DefaultReserve
		if _, all, err := space(filepath.Dir(path)); err == nil {
			d.size = min(d.size, all/20)
		}
	}
	_, err := os.Stat(d.path)
	d.held = err == nil
	d.lookNow(false)
	return d
}

// mostPages is how many pages of 4 KiB a change writes at the most besides its value.
const mostPages = 4

// load is what a transaction is about to write.
type load struct {
	rows  int
	bytes int64 // of values
	puts  bool  // not only deletes
}

func loadOf(batch []changelog.Change) load {
	l := load{rows: len(batch)}
	for i := range batch {
		l.bytes += int64(len(batch[i].Value))
		l.puts = l.puts || !batch[i].Delete
	}
	return l
}

func loadOfRows(rows []changelog.Row) load {
	l := load{rows: len(rows)}
	for i := range rows {
		l.bytes += int64(len(rows[i].Value))
		l.puts = l.puts || !rows[i].Deleted
	}
	return l
}

// lookClosely looks before a batch when little may be left, and says whether the disk has
// become full by it: a burst of writes must not use up what is left between two of the
// regular looks, since the reserve would be spent on it. What may be left is what was there
// at the last look less what batches have written since, in the write-ahead log and in the
// file.
func (d *disk) lookClosely(l load) (full bool) {
	if !d.spend(2 * (l.bytes + int64(l.rows)*mostPages<<12)) {
		return false
	}
	d.look()
	return d.now() != nil
}

// spend counts bytes that are about to be written to a disk that is not full, and says
// whether little may be left by them.
func (d *disk) spend(bytes int64) (little bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size == 0 || d.full {
		return false
	}
	d.free -= bytes
	return d.free < 4*d.size
}

// look compares the space that is free with the reserve.
func (d *disk) look() { d.lookNow(true) }

func (d *disk) lookNow(hold bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size == 0 {
		return
	}
	free, _, err := space(filepath.Dir(d.path))
	if err != nil {
		return
	}
	d.free = free
	all := free
	if d.held {
		all += d.size
	}
	if d.growth != nil && all < 4*d.size {
		all -= d.growth()
	}
	switch {
	case all < 2*d.size:
		d.full = true
		if !hold && free < d.size/8 { // a start needs space at once
			d.release()
		}
	case all >= 3*d.size && hold:
		if d.held || d.hold() {
			d.full = false
		}
	}
}

// ranOut notes that SQLite found no room, whatever the file system says, as with a quota.
func (d *disk) ranOut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size > 0 {
		d.full = true
		d.release()
	}
}

// checkRoomForRows is checkRoom for raw keys, of which a full disk takes only deletes.
func (l *database) checkRoomForRows(w *writer) error {
	if l.disk != nil && w.wrote.puts {
		if err := l.disk.now(); err != nil {
			return err
		}
	}
	return l.checkRoom(w)
}

// checkRoom refuses a batch on a full disk that would not leave enough for compaction.
func (l *database) checkRoom(w *writer) error {
	batch := w.wrote
	if l.disk == nil || batch.rows == 0 {
		return nil
	}
	if l.disk.lookClosely(batch) && batch.puts {
		return l.disk.now()
	}
	if l.disk.now() == nil {
		return nil
	}
	var pages, unused, size int64
	err := errors.Join(w.scan(`PRAGMA page_count`, nil, &pages), w.scan(`PRAGMA freelist_count`, nil, &unused),
		w.scan(`PRAGMA page_size`, nil, &size))
	if err != nil {
		return err
	}
	need := batch.bytes + int64(batch.rows)*mostPages*size
	// What the next checkpoint takes, what goes into the log, and what the file grows by.
	need += l.growth(pages*size) + max(0, need-unused*size)
	if !l.disk.roomFor(need) {
		return fmt.Errorf("%w: the disk is so full that even deletes have to wait until old versions are compacted", changelog.ErrUnavailable)
	}
	return nil
}

// growth returns how much a file of which size bytes are in use has to grow by, when what is
// in the write-ahead log is copied into it.
func (l *database) growth(size int64) int64 {
	file, err := l.guard.file.Stat()
	if err != nil {
		return 0
	}
	return max(0, size-file.Size())
}

// growthNow is growth for goroutines that do not hold the writer.
func (l *database) growthNow() int64 {
	var size int64
	if err := l.reads.QueryRow(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&size); err != nil {
		return 0
	}
	return l.growth(size)
}

// roomFor says whether need bytes leave enough for compaction. It removes the reserve if
// there is no room for them beside it.
func (d *disk) roomFor(need int64) bool {
	d.look()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held && d.free < need+d.size/8 {
		d.release()
	}
	free := d.free
	if d.held {
		free += d.size
	}
	return free-need >= d.size/4
}

// now returns an error that wraps changelog.ErrFull if only deletes are taken.
func (d *disk) now() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.full {
		return nil
	}
	return fmt.Errorf("%w: %d MiB are free at %s; until there are %d MiB, only deletes are taken: delete objects, or make room on the disk",
		changelog.ErrFull, d.free>>20, filepath.Dir(d.path), 3*d.size>>20)
}

func (d *disk) release() {
	err := os.Remove(d.path)
	if err == nil && d.held {
		d.free += d.size
	}
	d.held = d.held && err != nil && !os.IsNotExist(err)
}

// hold makes the reserve and says whether there was room for it.
func (d *disk) hold() bool {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	err = fillFile(f, d.size)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(d.path)
		return false
	}
	d.held, d.free = true, d.free-d.size
	return true
}

// space returns how many bytes the file system of dir has free for this user, and in all.
func space(dir string) (free, all int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return bytesOf(uint64(s.Bavail), int64(s.Bsize)), bytesOf(uint64(s.Blocks), int64(s.Bsize)), nil
}

// endless is the size of file systems that say that they have no end, as some on the network do.
const endless = 1 << 62

// bytesOf is the size of so many blocks, at most endless.
func bytesOf(blocks uint64, size int64) int64 {
	if size > 0 && blocks > uint64(endless/size) {
		return endless
	}
	return int64(blocks) * size
}

// writeZeros fills a file where blocks cannot be had without writing them.
func writeZeros(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
	return nil
}
