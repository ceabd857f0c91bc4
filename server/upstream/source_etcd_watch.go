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
	// changesWait is how long Changes waits if there are none.
	changesWait = 200 * time.Millisecond
	// quietPatience is how long an etcd may leave a request for its progress without an answer before
	// Changes fails, and watchPatience before another watch is opened in the place of one that has answered nothing yet.
	quietPatience = 3 * time.Second
	watchPatience = 15 * time.Second
	// answerPatience is how long an etcd may take to answer whether it is there at all.
	answerPatience = time.Second
)

// etcdWatch is a watch that is open.
type etcdWatch struct {
	prefix  string
	after   int64 // events up to there were known before
	through int64 // all events up to there were returned
	answers clientv3.WatchChan
	cancel  context.CancelFunc
	ctx     context.Context // of the stream, which requests for progress must name
	asked   time.Time       // when progress was asked for that has not been told; zero: none is waited for
	// answered is set once the etcd has sent something. When the connection breaks then, etcd's client opens the watch
	// again behind that, which may be in the future.
	answered bool
}

// errQuiet says that an etcd does not answer on a watch, which may go on.
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

// answers tells whether the etcd is there, whatever becomes of the watch.
func (s *etcdSource) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	_, err := s.Newest(ctx)
	return err == nil
}

func (s *etcdSource) openWatch(ctx context.Context, prefix string, after int64) {
	s.watch.close()
	w := &etcdWatch{prefix: prefix, after: after, through: after}
	// The stream breaks off when the etcd it is on has lost the others.
	w.ctx, w.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	// Each watch has a stream of its own, which etcd's client finds by the metadata: the client may leave one behind on a
	// stream that broke, and of a stream with a watch in the future an etcd tells no progress.
	s.watches++
	w.ctx = metadata.AppendToOutgoingContext(w.ctx, "watch", strconv.Itoa(s.watches))
	// The watch begins with what is known: of one that begins in the future an etcd tells no progress, so that an etcd to
	// which nobody writes would never answer.
	w.answers = s.client.Watch(w.ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(max(after, 1)))
	s.watch = w
}

// next returns what the etcd has sent. If that is nothing, it asks how far the etcd has come, which the
// etcd answers after all events up to there.
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

// askProgress asks how far the etcd has come. While there is no connection, etcd's client would wait for one.
func (w *etcdWatch) askProgress(c *clientv3.Client) error {
	if w.asked.IsZero() {
		w.asked = time.Now()
	}
	ctx, cancel := context.WithTimeout(w.ctx, changesWait)
	defer cancel()
	err := c.RequestProgress(ctx)
	if err != nil && ctx.Err() != nil && w.ctx.Err() == nil {
		return nil // receive tells how long there has been no answer
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
