package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// snapshotsPath is where clients of a server for tests take snapshots and go back to them: POST here
// takes one, GET lists them, POST to NAME/rewind goes back, DELETE of NAME gives one up. They are kept
// by this process only, and end with it; so their names are given by no other process.
const snapshotsPath = "/plinth/snapshots"

// mostSnapshots bounds what is kept from compaction by clients that forget to give snapshots up.
const mostSnapshots = 100

// snapshots are the states that clients may go back to.
type snapshots struct {
	server *Server
	prefix string // of the names that this process gives

	mu   sync.Mutex
	last int
	kept []keptSnapshot
}

type keptSnapshot struct {
	Name     string `json:"name"`
	Revision int64  `json:"revision"` // of the server when it was taken

	pin *sqlstore.Pin
}

func newSnapshots(s *Server) *snapshots {
	return &snapshots{server: s, prefix: rand.String(5) + "-"}
}

// serve answers for snapshotsPath and the paths below.
func (s *snapshots) serve(x *guard.Call) error {
	r := x.Request()
	name, action, _ := strings.Cut(strings.Trim(strings.TrimPrefix(r.URL.Path, snapshotsPath), "/"), "/")
	switch {
	case name == "" && r.Method == http.MethodGet:
		return answerJSON(x, http.StatusOK, map[string]any{"snapshots": s.list()})
	case name == "" && r.Method == http.MethodPost:
		return s.take(x)
	case action == "" && name != "" && r.Method == http.MethodDelete:
		return s.drop(x, name)
	case action == "rewind" && r.Method == http.MethodPost:
		return s.rewind(x, name)
	case action == "" || action == "rewind":
		return response.MethodNotAllowed()
	}
	return response.NotFound()
}

func (s *snapshots) list() []keptSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]keptSnapshot{}, s.kept...)
}

func (s *snapshots) take(x *guard.Call) error {
	pin, err := s.server.Pin(x.Request().Context())
	if err != nil {
		return err
	}
	kept := keptSnapshot{Revision: s.server.store.Revision(), pin: pin}
	if !s.keep(&kept) {
		pin.Release()
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d snapshots; DELETE %s/NAME gives one up", mostSnapshots, snapshotsPath), 1)
	}
	return answerJSON(x, http.StatusCreated, kept)
}

func (s *snapshots) keep(one *keptSnapshot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= mostSnapshots {
		return false
	}
	s.last++
	one.Name = s.prefix + strconv.Itoa(s.last)
	s.kept = append(s.kept, *one)
	return true
}

func (s *snapshots) find(name string, remove bool) (keptSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(k keptSnapshot) bool { return k.Name == name })
	if i < 0 {
		return keptSnapshot{}, s.absent(name)
	}
	found := s.kept[i]
	if remove {
		s.kept = slices.Delete(s.kept, i, i+1)
	}
	return found, nil
}

// absent returns the error about a name that is not there.
func (s *snapshots) absent(name string) error {
	err := apierrors.NewNotFound(schema.GroupResource{Resource: "snapshots"}, name)
	if !strings.HasPrefix(name, s.prefix) {
		err.ErrStatus.Message += fmt.Sprintf(": the names of this server begin with %s, so another one took the snapshot, or this one before it was restarted; a snapshot is known to the process that took it", s.prefix)
	}
	return err
}

func (s *snapshots) drop(x *guard.Call, name string) error {
	one, err := s.find(name, true)
	if err != nil {
		return err
	}
	one.pin.Release()
	return answerJSON(x, http.StatusOK, one)
}

func (s *snapshots) rewind(x *guard.Call, name string) error {
	one, err := s.find(name, false)
	if err == nil {
		ctx := x.Request().Context()
		err = s.server.rewind(ctx, one.pin, changelog.Author{User: x.User.GetName(), Impersonator: audit.Impersonator(ctx)})
	}
	if err != nil {
		return err
	}
	one.Revision = s.server.store.Revision()
	return answerJSON(x, http.StatusOK, one)
}

func answerJSON(x *guard.Call, code int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	response.WriteBody(x.Response(), x.Request(), code, "application/json", append(body, '\n'))
	return nil
}
