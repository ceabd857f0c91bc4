package torture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// History is what clients were told in one round, and the log that explains it. Its methods are safe for
// concurrent use; its fields are read when the clients have ended.
type History struct {
	Seed  uint64
	Round int
	Begun time.Time
	Keeps time.Duration // how long plinth must keep old versions readable

	mu      sync.Mutex
	Calls   []*Call
	Watches []*Watch
	Faults  []Fault
	Digests []Digest

	Log    []Row    // changes of the round's objects, in order of revisions
	Others []Moment // the other changes
	Shrunk bool     // calls were left out
}

// NewHistory returns an empty History that begins now.
func NewHistory(keeps time.Duration) *History {
	return &History{Begun: time.Now(), Keeps: keeps}
}

// Now returns the time since the beginning. It never goes back.
func (h *History) Now() time.Duration { return time.Since(h.Begun) }

// Kinds of calls.
const (
	Create = "create"
	Update = "update"
	Patch  = "patch"
	Apply  = "apply"
	Delete = "delete"
	Get    = "get"
	List   = "list"
	Pages  = "paged list" // all pages as one call
)

// What the resourceVersion of a read asks for.
const (
	Newest   = ""          // none is given: the newest state
	Any      = "any"       // 0: whatever is there
	Exact    = "exactly"   // the state at that revision
	NotOlder = "not older" // a state at that revision or later
)

// Call is one call and what became of it.
type Call struct {
	ID         string // its audit id, which the log has, too
	Client     int
	Replica    int
	Kind       string
	Key        string // NAMESPACE/NAME; of lists NAMESPACE/, or a prefix of namespaces
	Begin, End time.Duration

	Sent   Content `json:",omitzero"`  // of writes
	Expect int64   `json:",omitempty"` // resourceVersion that a write names
	Read   string  `json:",omitempty"` // see Newest
	At     int64   `json:",omitempty"` // of Exact and NotOlder

	Status   int           // HTTP's; 0: no answer came
	Error    string        `json:",omitempty"`
	Revision int64         `json:",omitempty"` // of the list, or of the object
	Items    []Item        `json:",omitempty"` // what was read, or what a write has made
	Partly   bool          `json:",omitempty"` // later pages are missing
	Settled  time.Duration `json:",omitempty"` // when the first page had come
}

// Content is what an object says.
type Content struct {
	V string `json:",omitempty"` // as create, update and patch write it
	A string `json:",omitempty"` // as apply writes it
}

// Item is an object at a revision.
type Item struct {
	Key      string
	Revision int64
	Content
}

// Row is a change that the database has.
type Row struct {
	Item
	Deleted bool   `json:",omitempty"`
	At      int64  // Unix milliseconds
	By      string // id of the call
}

// Moment is when a revision was committed.
type Moment struct{ Revision, At int64 }

// Watch is one that a client goes on with after each break. Its client alone writes to it.
type Watch struct {
	Name    string
	Prefix  string // of the keys that it follows
	Streams []*Stream
}

// Stream is one request of a watch.
type Stream struct {
	Replica int
	Start   int64 // resourceVersion; everything after it is to be told
	State   bool  `json:",omitempty"` // the state is told first, at the revision of the bookmark that ends it
	Begin   time.Duration
	Events  []Event
	Status  int    // HTTP's, or that of the error that ended the stream; 0: it broke
	Error   string `json:",omitempty"`
	End     time.Duration
}

// Event is what a watch was told.
type Event struct {
	Item
	Type    string
	Initial bool `json:",omitempty"` // of a bookmark: it ends the state
	At      time.Duration
}

// Types of events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
)

// Fault is one that was made.
type Fault struct {
	Name       string
	Replica    int
	Begin, End time.Duration
}

// Digest is that of all objects at a revision, as a replica or the database has them.
type Digest struct {
	Of       string
	Revision int64
	Objects  int64
	Sum      string
}

// Writes tells whether the call changes an object.
func (c *Call) Writes() bool {
	switch c.Kind {
	case Get, List, Pages:
		return false
	}
	return true
}

// OK tells whether the call was answered with success.
func (c *Call) OK() bool { return c.Status >= 200 && c.Status < 300 }

// Refused tells whether the server has said that the call changed nothing.
func (c *Call) Refused() bool {
	switch c.Status {
	case 400, 401, 403, 404, 409, 410, 413, 415, 422, 429, 503:
		return true
	}
	return false
}

// Unknown tells whether nobody has told what became of a write.
func (c *Call) Unknown() bool { return c.Writes() && !c.OK() && !c.Refused() }

func (h *History) add(c *Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Calls = append(h.Calls, c)
}

func (h *History) addWatch(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Watches = append(h.Watches, w)
}

func (h *History) addFault(f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Faults = append(h.Faults, f)
}

// Save writes the history to a file.
func (h *History) Save(path string) error {
	text, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return fmt.Errorf("save history: %w", err)
	}
	return os.WriteFile(filepath.Clean(path), text, 0o644)
}
