package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	. "github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestCopyModel copies logs that others write to and compact between any two calls of the copy. At any
// call the copy may be killed: from then on all its calls fail. Then another one goes on, or the log is
// taken back before. What is in the source in the end is in the target, and nothing else.
func TestCopyModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &copyModel{t: t, random: rand.New(rand.NewPCG(1, seed)), from: openDSN(t, "sqlite://:memory:"), to: openDSN(t, "sqlite://:memory:"), keys: map[string]int64{}}
			for range m.random.IntN(60) {
				m.write()
			}
			m.write()
			m.copyUntilDone()
			m.check()
		})
	}
}

var errKilled = errors.New("killed")

type copyModel struct {
	t *testing.T

	mu       sync.Mutex
	random   *rand.Rand
	from, to changelog.Log
	keys     map[string]int64 // of the source, with their revisions; 0: deleted
	stopped  bool             // the source refused a write
	calls    int              // left until the copy is killed
	copies   int
}

// write makes, changes or deletes an object of the source.
func (m *copyModel) write() {
	key := fmt.Sprintf("/registry/core/configmaps/ns/c%02d", m.random.IntN(40))
	c := changelog.Change{Key: key, Expect: m.keys[key], Value: fmt.Appendf(nil, `{"n":%d}`, m.random.IntN(1000))}
	c.Delete = c.Expect != 0 && m.random.IntN(2) == 0
	a, err := m.from.Append(m.t.Context(), []changelog.Change{c})
	if errors.Is(err, changelog.ErrMoved) {
		m.stopped = true
		return
	}
	if err != nil || a.Results[0].Revision == 0 {
		m.t.Fatalf("write %+v: %+v, %v", c, a, err)
	}
	m.stopped = false
	if m.keys[key] = a.Results[0].Revision; c.Delete {
		m.keys[key] = 0
	}
}

// busy is what others do to the source between two calls of a copy.
func (m *copyModel) busy() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls--; m.calls < 0 {
		return errKilled
	}
	for range m.random.IntN(4) {
		m.write()
	}
	if m.random.IntN(12) == 0 {
		if _, err := m.from.Compact(m.t.Context(), 1<<40, 1000, nil); err != nil {
			m.t.Fatal(err)
		}
	}
	return nil
}

func (m *copyModel) copyUntilDone() {
	for {
		m.calls = m.random.IntN(150)
		if m.copies++; m.copies > 20 {
			m.calls = 1 << 30
		}
		o := CopyOptions{Online: true, Place: "elsewhere", Prepare: m.random.IntN(5) == 0}
		copied, err := CopyInSteps(m.t.Context(), busyLog{m.to, m}, busyLog{m.from, m}, o)
		switch {
		case errors.Is(err, ErrCopied): // the one before was killed when it had finished
			return
		case err == nil && !o.Prepare:
			if copied.Stopped <= 0 {
				m.t.Errorf("%+v", copied)
			}
			return
		case err == nil:
		case !errors.Is(err, errKilled):
			m.t.Fatal(err)
		case m.random.IntN(4) == 0 && changelog.HalfCopied(m.t.Context(), m.to) != nil:
			if _, err := m.from.Move(m.t.Context(), ""); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

func (m *copyModel) check() {
	m.write()
	if !m.stopped {
		m.t.Error("the source still takes writes")
	}
	if err := changelog.HalfCopied(m.t.Context(), m.to); err != nil {
		m.t.Error(err)
	}
	if diff := cmp.Diff(held(m.t, m.from), held(m.t, m.to)); diff != "" {
		m.t.Errorf("in the source (-) and in the target (+):\n%s", diff)
	}
}

// busyLog is a log of a copy between whose calls others are busy.
type busyLog struct {
	changelog.Log
	m *copyModel
}

func (l busyLog) State(ctx context.Context, from, to string, revision int64, limit int) ([]changelog.Row, error) {
	if err := l.m.busy(); err != nil {
		return nil, err
	}
	return l.Log.State(ctx, from, to, revision, limit)
}

func (l busyLog) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	if err := l.m.busy(); err != nil {
		return nil, err
	}
	return l.Log.Rows(ctx, after, limit)
}

func (l busyLog) Origins(ctx context.Context, ids []int64) (map[int64]changelog.Origin, error) {
	if err := l.m.busy(); err != nil {
		return nil, err
	}
	return l.Log.Origins(ctx, ids)
}

func (l busyLog) Head(ctx context.Context) (changelog.Head, error) {
	if err := l.m.busy(); err != nil {
		return changelog.Head{}, err
	}
	return l.Log.Head(ctx)
}

func (l busyLog) Marks(ctx context.Context) (map[string]string, error) {
	if err := l.m.busy(); err != nil {
		return nil, err
	}
	return l.Log.Marks(ctx)
}

func (l busyLog) SetMarks(ctx context.Context, marks map[string]string) error {
	if err := l.m.busy(); err != nil {
		return err
	}
	return l.lost(l.Log.SetMarks(ctx, marks))
}

func (l busyLog) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	if err := l.m.busy(); err != nil {
		return changelog.Appended{}, err
	}
	a, err := l.Log.Append(ctx, batch)
	return a, l.lost(err)
}

func (l busyLog) Raise(ctx context.Context, revision int64) error {
	if err := l.m.busy(); err != nil {
		return err
	}
	return l.lost(l.Log.Raise(ctx, revision))
}

func (l busyLog) Move(ctx context.Context, to string) (int64, error) {
	if err := l.m.busy(); err != nil {
		return 0, err
	}
	head, err := l.Log.Move(ctx, to)
	return head, l.lost(err)
}

// lost is the error of a transaction that has committed before the copy was killed, or err.
func (l busyLog) lost(err error) error {
	if err == nil {
		err = l.m.busy()
	}
	return err
}
