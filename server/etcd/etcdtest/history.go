package etcdtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// History is what the clients of one key space saw. Its methods are safe for concurrent use; its fields may
// be read after the clients have ended.
type History struct {
	begin time.Time

	mu      sync.Mutex
	Calls   []Call
	Watches []*Watch
	Leases  []*Lease
}

// NewHistory returns an empty History that begins now.
func NewHistory() *History { return &History{begin: time.Now()} }

// Now returns the time since the beginning. It never goes back.
func (h *History) Now() time.Duration { return time.Since(h.begin) }

// Kinds of calls.
const (
	Get     = "get"
	List    = "list"    // one page
	Put     = "put"     // of all Keys in one transaction
	Delete  = "delete"  // of one key
	Compact = "compact" // of all below the revision At
)

// Call is one request and its answer.
type Call struct {
	Client, Member int
	Begin, End     time.Duration
	Kind           string
	Keys           []string // keys that are read or written; for a list, its first key and its end, which it does not include
	Value          string   `json:",omitempty"` // the value that this call, and no other, puts
	Lease          int64    `json:",omitempty"`
	Compare        bool     `json:",omitempty"` // a put or delete only happens if the mod revision of the first key is Expect
	Expect         int64    `json:",omitempty"`
	At             int64    `json:",omitempty"` // revision that is read; 0: the newest
	Limit          int64    `json:",omitempty"`

	Error     string `json:",omitempty"` // the call may or may not have happened, now or later
	Refused   bool   `json:",omitempty"` // no outage explains the error
	Compacted bool   `json:",omitempty"` // the error is that the revision At was compacted
	Answer
}

// Answer is the answer to a call without an error.
type Answer struct {
	Revision  int64 `json:",omitempty"` // of the header
	Succeeded bool  `json:",omitempty"` // the comparison; always if there is none
	KVs       []KV  `json:",omitempty"` // that were read: by a get, a list, or after a comparison that failed
	Count     int64 `json:",omitempty"` // of a list
	More      bool  `json:",omitempty"`
}

// Writes reports whether c changes keys if it happens.
func (c *Call) Writes() bool { return c.Kind == Put || c.Kind == Delete }

// KV is a key with its state on the server. The zero KV means that the key does not exist.
type KV struct {
	Key, Value           string
	Create, Mod, Version int64
	Lease                int64 `json:",omitempty"`
}

// Change is one event of a watch. Only watches that request it know the previous state of the key.
type Change struct {
	Delete bool `json:",omitempty"`
	KV     KV
	Before *KV `json:",omitempty"`
}

// Watch follows a range of keys, on one stream after the other.
type Watch struct {
	Name      string
	From, End string
	Before    bool // it requests the previous state of keys
	Streams   []*Stream
}

// Stream is a part of a Watch. It ends with its connection, and the next Stream continues.
type Stream struct {
	Member    int
	Start     int64 // the revision that it was asked to start with
	Responses []Response
}

// Response is one message of a stream.
type Response struct {
	At       time.Duration // when it came
	Revision int64         // of the header
	Progress bool          `json:",omitempty"` // the watch has received everything up to Revision
	Canceled string        `json:",omitempty"` // by the server, and why
	Changes  []Change      `json:",omitempty"`
}

// Lease is one that was granted.
type Lease struct {
	ID      int64
	TTL     time.Duration
	Renewed time.Duration // when the last successful grant or renewal was requested
	Gone    bool          // it no longer existed at the end
}

// Add adds a call.
func (h *History) Add(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Calls = append(h.Calls, c)
}

// AddWatch adds a watch. Its streams belong to the caller until the history is checked.
func (h *History) AddWatch(w *Watch) *Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Watches = append(h.Watches, w)
	return w
}

// AddLease adds a lease. It belongs to the caller until the history is checked.
func (h *History) AddLease(l *Lease) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Leases = append(h.Leases, l)
	return l
}

// Position returns the revision up to which w has received everything.
func (w *Watch) Position() (revision int64) {
	for _, s := range w.Streams {
		revision = max(revision, s.Position())
	}
	return revision
}

// Position returns the revision up to which s has received everything; the one before Start if nothing came.
func (s *Stream) Position() int64 {
	revision := s.Start - 1
	for _, r := range s.Responses {
		revision = max(revision, r.position())
	}
	return revision
}

// position returns the revision up to which r completes the stream; 0: it does not.
func (r *Response) position() (revision int64) {
	if r.Progress {
		revision = r.Revision
	}
	for _, c := range r.Changes {
		revision = max(revision, c.KV.Mod)
	}
	return revision
}

// Save writes the history as JSON to a file in dir and returns its path.
func (h *History) Save(dir string) (string, error) {
	path := filepath.Join(dir, "history.json")
	text, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return "", fmt.Errorf("save history: %w", err)
	}
	return path, os.WriteFile(path, text, 0o644)
}

func kvOf(kv *mvccpb.KeyValue) KV {
	return KV{Key: string(kv.Key), Value: string(kv.Value), Create: kv.CreateRevision, Mod: kv.ModRevision, Version: kv.Version, Lease: kv.Lease}
}

func kvsOf(kvs []*mvccpb.KeyValue) (all []KV) {
	for _, kv := range kvs {
		all = append(all, kvOf(kv))
	}
	return all
}

// responseOf converts a message into a Response. A message reports progress only if it has no events and is
// not about the watch itself.
func responseOf(r *pb.WatchResponse, at time.Duration) Response {
	response := Response{At: at, Revision: r.Header.Revision}
	if r.Canceled {
		response.Canceled = fmt.Sprintf("canceled: %s, compacted %d", r.CancelReason, r.CompactRevision)
	}
	response.Progress = !r.Canceled && !r.Created && len(r.Events) == 0
	for _, e := range r.Events {
		c := Change{Delete: e.Type == mvccpb.Event_DELETE, KV: kvOf(e.Kv)}
		if e.PrevKv != nil {
			before := kvOf(e.PrevKv)
			c.Before = &before
		}
		response.Changes = append(response.Changes, c)
	}
	return response
}
