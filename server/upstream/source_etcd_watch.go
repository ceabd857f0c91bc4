package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

const (
	// changesWait is how long Changes waits for a change.
	changesWait = 200 * time.Millisecond
	// quietPatience is how long an etcd may leave a progress request unanswered before Changes fails.
	// watchPatience is how long a new watch may be without an answer before another one replaces it.
	quietPatience = 3 * time.Second
	watchPatience = 15 * time.Second
	// answerPatience is how long an etcd may take to answer a check whether it is there.
	answerPatience = time.Second
)

// etcdWatch is an open watch.
type etcdWatch struct {
	prefix  string
	after   int64 // events up to this revision were known before
	through int64 // all events up to this revision were returned
	answers clientv3.WatchChan
	cancel  context.CancelFunc
	ctx     context.Context // context of the stream, by which progress requests find it
	asked   time.Time       // when the pending progress request was sent; zero: there is none
	// answered is set once the etcd has sent something. If the connection breaks after that, etcd's client
	// reopens the watch behind that revision, which may be in the future.
	answered bool
}

// errQuiet means that an etcd does not answer on a watch, which may still continue.
var errQuiet = errors.New("watch etcd: it does not answer")

func (w *etcdWatch) close() {
	if w != nil {
		w.cancel()
	}
}

func (s *etcdSource) Changes(ctx context.Context, prefix string, after int64) (Changes, error) {
	if w := s.watch; w == nil || w.prefix != prefix || w.through != after {
		s.openWatch(ctx, prefix, after)
	}
	got, err := s.watch.next(ctx, s.client)
	if errors.Is(err, errQuiet) && s.watch.answered && s.answers(ctx) {
		s.openWatch(ctx, prefix, after)
		got, err = s.watch.next(ctx, s.client)
	}
	if errors.Is(err, errQuiet) && time.Since(s.watch.asked) < watchPatience {
		return Changes{}, err
	}
	if err != nil {
		s.watch.close()
		s.watch = nil
		return Changes{}, err
	}
	s.watch.through = got.Through
	return got, nil
}

// answers reports whether the etcd is reachable, whatever the state of the watch.
func (s *etcdSource) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	_, err := s.Newest(ctx)
	return err == nil
}

func (s *etcdSource) openWatch(ctx context.Context, prefix string, after int64) {
	s.watch.close()
	w := &etcdWatch{prefix: prefix, after: after, through: after}
	// The stream ends when its etcd has lost the other members.
	w.ctx, w.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	// Each watch has its own stream, which etcd's client finds by this metadata: on a shared stream, the
	// client may leave a watch of a broken stream, and an etcd reports no progress on a stream with a watch
	// in the future.
	s.watches++
	w.ctx = metadata.AppendToOutgoingContext(w.ctx, "watch", strconv.Itoa(s.watches))
	// The watch begins at a known revision: an etcd reports no progress on a watch that begins in the future,
	// so that an etcd to which nobody writes would never answer.
	w.answers = s.client.Watch(w.ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(max(after, 1)))
	s.watch = w
}

// next returns what the etcd has sent. If that is nothing, it requests progress, which the etcd reports after
// all events up to it.
func (w *etcdWatch) next(ctx context.Context, c *clientv3.Client) (Changes, error) {
	answer, there, err := w.receive(ctx)
	for begun := time.Now(); err == nil && !there; {
		if time.Since(begun) > quietPatience {
			err = errQuiet
		} else if err = w.askProgress(c); err == nil {
			answer, there, err = w.receive(ctx)
		}
	}
	if err != nil {
		return Changes{}, err
	}
	w.asked, w.answered = time.Time{}, true
	return w.changes(answer)
}

// askProgress requests progress. Without a connection, etcd's client would wait for one.
func (w *etcdWatch) askProgress(c *clientv3.Client) error {
	if w.asked.IsZero() {
		w.asked = time.Now()
	}
	ctx, cancel := context.WithTimeout(w.ctx, changesWait)
	defer cancel()
	err := c.RequestProgress(ctx)
	if err != nil && ctx.Err() != nil && w.ctx.Err() == nil {
		return nil // receive notices if there is no answer for long
	}
	return err
}

func (w *etcdWatch) receive(ctx context.Context) (answer clientv3.WatchResponse, there bool, err error) {
	timer := time.NewTimer(changesWait)
	defer timer.Stop()
	select {
	case answer, open := <-w.answers:
		if !open {
			return answer, false, errors.New("watch etcd: the watch has ended")
		}
		return answer, true, nil
	case <-timer.C:
		return answer, false, nil
	case <-ctx.Done():
		return answer, false, ctx.Err()
	}
}

func (w *etcdWatch) changes(answer clientv3.WatchResponse) (Changes, error) {
	if err := answer.Err(); answer.CompactRevision > 0 || errors.Is(err, rpctypes.ErrCompacted) {
		return Changes{}, ErrCompacted
	} else if err != nil {
		return Changes{}, fmt.Errorf("watch etcd: %w", err)
	}
	got := Changes{Through: w.through}
	if answer.IsProgressNotify() {
		got.Through = max(got.Through, answer.Header.Revision)
	}
	for _, e := range answer.Events {
		if e.Kv.ModRevision <= w.after {
			continue
		}
		got.Events = append(got.Events, Event{
			Pair:    Pair{string(e.Kv.Key), e.Kv.Value, e.Kv.ModRevision},
			Deleted: e.Type == clientv3.EventTypeDelete,
		})
		got.Through = max(got.Through, e.Kv.ModRevision)
	}
	return got, nil
}
