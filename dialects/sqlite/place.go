package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// lookEvery is how often a log that is open looks whether its files are where they were.
const lookEvery = 250 * time.Millisecond

// place is where the files of an open log are. SQLite goes on writing into files that were
// moved, deleted or replaced: what is acknowledged then is gone with the process. So the
// log looks regularly whether its files are still in place.
type place struct {
	files  []placed
	header *os.File // the database, open for as long as it is guarded
	epoch  uint32   // see newEpoch

	spoilt  atomic.Pointer[error] // an error that lasts until the process ends
	trouble atomic.Pointer[error] // the last error of look
}

var (
	// errOverwritten says that SQLite's picture of the file is wrong.
	errOverwritten = errors.New("it was overwritten while it was open; stop plinth, remove its -wal and -shm, and put the file there again")
	// errSetBack says that another program has changed the database, so that revisions would
	// be used again.
	errSetBack = fmt.Errorf("the database has lost revisions that were acknowledged, as by sqlite3's .restore; %w, which goes on above them", changelog.ErrRestart)
)

// placed is a file with its path.
type placed struct {
	path string
	id   identity
}

// newPlace notes the files of the database at path, which SQLite has open.
func newPlace(path string, header *os.File, epoch uint32) (*place, error) {
	p := &place{header: header, epoch: epoch}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		id, err := identify(name)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, placed{name, id})
	}
	return p, nil
}

// look notes what is wrong with the place and returns it: nil, or an error that wraps
// changelog.ErrUnavailable. The error ends when the files are back.
func (p *place) look() error {
	err := p.check()
	if err == nil {
		p.checkHeader()
		if spoilt := p.spoilt.Load(); spoilt != nil {
			err = *spoilt
		}
	}
	if err == nil {
		p.trouble.Store(nil)
		return nil
	}
	err = fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
	p.trouble.Store(&err)
	return err
}

// spoil notes the first error that lasts until the process ends.
func (p *place) spoil(err error) { p.spoilt.CompareAndSwap(nil, &err) }

// now returns the last error of look.
func (p *place) now() error {
	if err := p.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// check compares the files with those that were opened.
func (p *place) check() error {
	for i := range p.files {
		f := &p.files[i]
		id, err := identify(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%s is not there any more: it was moved or deleted, or its file system was unmounted; put it back", f.path)
		case err != nil:
			return fmt.Errorf("%s cannot be seen: %w", f.path, err)
		case id != f.id:
			return fmt.Errorf("%s is another file than the one that was opened; put that one back; or, to serve the new one, stop plinth, remove the files of the old one that end in -wal and -shm, and start it", f.path)
		}
	}
	return nil
}

// checkHeader finds a database that was overwritten in place.
func (p *place) checkHeader() {
	m, err := readHeader(p.header)
	if err != nil || m.schema-p.epoch >= epochSpan {
		p.spoil(fmt.Errorf("%s: %w", p.files[0].path, errOverwritten))
	}
}

// watch looks after the place and its disk until ctx ends.
func (l *database) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	full := l.disk.now() != nil
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.closed:
			return
		case <-tick.C:
		}
		if l.place.look() == nil {
			full = l.lookAtDisk(ctx, full)
		}
	}
}

// lookAtDisk compares the space that is free with the reserve. What is in the write-ahead
// log goes into the file while there is room for it: else it would use up the reserve. was
// says whether the disk was full at the last look of this kind, since a batch looks, too, and
// may have been the first to see it full.
func (l *database) lookAtDisk(ctx context.Context, was bool) (full bool) {
	l.disk.look()
	full = l.disk.now() != nil
	if full && !was {
		_, _ = l.checkpoint(ctx) // without it less can be deleted before compaction
	}
	return full
}

// placedReader opens connections that read while the files are in place. Else the name leads to
// another file, which SQLite would read as the log and whose write-ahead log it would delete.
type placedReader struct {
	connector
	log *database
}

func (r placedReader) Connect(ctx context.Context) (driver.Conn, error) {
	if r.log.place == nil { // in memory, or while the log is opened
		return r.connector.Connect(ctx)
	}
	if err := r.log.place.look(); err != nil {
		return nil, err
	}
	conn, err := r.connector.Connect(ctx) // which opens the file and reads nothing of it
	if err != nil {
		return nil, err
	}
	if err := r.log.place.look(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Condition returns what is wrong with the place or the disk of the file.
func (l *database) Condition() error {
	if l.place == nil { // in memory
		return nil
	}
	if err := l.place.now(); err != nil {
		return err
	}
	return l.disk.now()
}
