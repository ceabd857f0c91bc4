package backups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// File is a backup in a folder.
type File struct {
	Name     string
	Time     time.Time // when it was taken
	Revision int64
	Bytes    int64
}

// Listing is what a folder has of a cluster.
type Listing struct {
	Files []File    // the newest first, at most mostListed
	Count int       // of all files
	Read  time.Time // when the folder was read; zero: never
	Err   error     // why the folder could not be read; what was read before stays
}

const (
	// mostListed bounds how many files a Listing names.
	mostListed = 50
	// listFresh is how long a Listing is new enough, at least; longer if reading the folder takes long.
	listFresh = 15 * time.Second
	listShare = 50 // of the time is the most that reading takes, as 1/50
	// listPatience is how long a caller waits for a folder that is being read.
	listPatience = 250 * time.Millisecond
)

var errSlow = errors.New("the disk does not answer")

// List says which files of the cluster a folder has, which is the same in each call. It reads the folder when it has not
// done so of late, or when a file was made. A disk on a network may not answer: nobody waits for it long.
func (b *Backups) List(dir string) Listing {
	return b.listed.now(func() Listing { return b.list(dir) })
}

// listed remembers a Listing.
type listed struct {
	mu      sync.Mutex // guards what follows
	last    Listing
	fresh   time.Time     // until when last is new enough
	begun   time.Time     // when somebody began to read
	reading chan struct{} // closed when that ends; nil: nobody reads
	changed bool          // the folder may have changed since begun
}

// now returns the Listing, which read makes anew if it is too old.
func (l *listed) now(read func() Listing) Listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading == nil {
		if time.Now().Before(l.fresh) {
			return l.last
		}
		l.begun, l.reading, l.changed = time.Now(), make(chan struct{}), false
		go l.take(read)
	}
	done, left := l.reading, listPatience-time.Since(l.begun)
	l.mu.Unlock()
	slow := false
	select {
	case <-done:
	case <-time.After(left):
		slow = true
	}
	l.mu.Lock()
	last := l.last
	if slow {
		last.Err = errSlow
	}
	return last
}

// take reads the folder, however long that takes.
func (l *listed) take(read func() Listing) {
	found := read()
	l.mu.Lock()
	defer l.mu.Unlock()
	if found.Err != nil {
		found.Files, found.Count, found.Read = l.last.Files, l.last.Count, l.last.Read
	}
	l.last = found
	if !l.changed {
		l.fresh = time.Now().Add(max(listFresh, listShare*time.Since(l.begun)))
	}
	close(l.reading)
	l.reading = nil
}

// forget makes the next call of now read the folder.
func (l *listed) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh, l.changed = time.Time{}, true
}

// list reads a folder. One that is missing has no files yet.
func (b *Backups) list(dir string) Listing {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Listing{Err: withoutPath(err)}
	}
	l := Listing{Read: time.Now()}
	for _, e := range entries {
		if f, ok := b.fileOf(e.Name()); ok && e.Type().IsRegular() {
			l.Files = append(l.Files, f)
		}
	}
	slices.SortFunc(l.Files, func(x, y File) int { return strings.Compare(y.Name, x.Name) })
	l.Count = len(l.Files)
	l.Files = l.Files[:min(l.Count, mostListed)]
	for i := range l.Files {
		if info, err := os.Stat(filepath.Join(dir, l.Files[i].Name)); err == nil { // another server may just have removed it
			l.Files[i].Bytes = info.Size()
		}
	}
	return l
}

// fileOf reads the name of a file of this cluster.
func (b *Backups) fileOf(name string) (f File, ok bool) {
	at, ok := b.timeOf(name)
	if !ok {
		return f, false
	}
	_, text, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, b.prefix()), extension), "-r")
	revision, err := strconv.ParseInt(text, 10, 64)
	return File{Name: name, Time: at, Revision: revision}, err == nil
}
