package apibench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// writesPerSecond is the pace of changes while watches are measured.
const writesPerSecond = 100

// lossTargets are for what may not happen.
var lossTargets = []figures.Target{{Bound: figures.AtMost(0)}}

func (r *run) measureWatch(ctx context.Context) error {
	pace := fmt.Sprintf("%d watchers, %d writes/s", r.scale.watches, writesPerSecond)
	rounds := 0
	return r.compare(ctx, r.scale.watchRounds, false, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		rounds++
		return r.watchOnce(ctx, s, fmt.Sprintf("watched-%03d-", rounds))
	},
		&figures.Row{What: "watch, " + pace + ": p99 delay", Unit: "ms", Less: true},
		&figures.Row{What: "watch: events lost, repeated or out of order", Unit: "events", Less: true, Targets: lossTargets, Sum: true},
		&figures.Row{What: "watch: CPU of the server", Unit: "ms/event", Less: true})
}

func (r *run) watchOnce(ctx context.Context, s *server, prefix string) ([]figures.Sample, error) {
	a, err := apiload.Seat(ctx, s.clients, r.scale.watches, 1, func(uint8) string { return s.configMaps() })
	if err != nil {
		return nil, err
	}
	defer a.End()
	before, known := measure.Spend(s.pids)
	err = a.WriteAtPace(ctx, int(r.scale.watch.Seconds()*writesPerSecond), writesPerSecond, func(ctx context.Context, n int) error {
		body := apiload.Stamp(apiload.ConfigMap(fmt.Sprintf("%s%06d", prefix, n), n, n))
		_, err := s.client(n).Do(ctx, http.MethodPost, s.configMaps(), body, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.Settle(ctx)
	after, _ := measure.Spend(s.pids)
	a.End()
	v := a.Judge()
	cpu := figures.Millis(after.Since(before).CPU) / float64(max(v.Expected, 1))
	return []figures.Sample{v.Delay(), v.Faults(plain), {Value: cpu, None: !known}}, ctx.Err()
}

func (r *run) newChurn() *measure.Churn {
	return &measure.Churn{Keys: r.scale.churned, Resources: r.scale.resources, Writers: r.scale.writers, For: r.Churn, Rate: r.ChurnRate}
}

func (r *run) measureChurn(ctx context.Context) error {
	return r.compare(ctx, 1, false, r.churn, r.newChurn().Rows(r.scale.watches, lossTargets)...)
}

// churn lets writers and watches work on one server.
func (r *run) churn(ctx context.Context, s *server) ([]figures.Sample, error) {
	c := r.newChurn()
	c.Store = &churned{s, r.scale.resources}
	var err error
	// Each watch is of the objects of a part, which a label says.
	c.Audience, err = apiload.Seat(ctx, s.clients, r.scale.watches, r.scale.resources, func(part uint8) string {
		return s.configMaps() + "?" + apiload.PartSelector(int(part))
	})
	if err != nil {
		return nil, err
	}
	defer c.Audience.End()
	before, err := s.footprint()
	if err != nil {
		return nil, err
	}
	took := c.Run(ctx)
	c.Audience.Settle(ctx)
	after, err := s.footprint()
	if err != nil {
		return nil, err
	}
	c.Audience.End()
	return c.Samples(took, after.Since(before), plain), ctx.Err()
}

// churned are the objects of a churn.
type churned struct {
	s     *server
	parts int
}

func (c *churned) path(key int) string { return fmt.Sprintf("%s/churned-%05d", c.s.configMaps(), key) }

// Put implements measure.Store.
func (c *churned) Put(ctx context.Context, worker, key, n int, at int64) (measure.Answer, error) {
	body := apiload.Stamp(apiload.ConfigMap(fmt.Sprintf("churned-%05d", key), n, key%c.parts))
	method, path := http.MethodPost, c.s.configMaps()
	if at != 0 {
		method, path = http.MethodPut, c.path(key)
		body = bytes.Replace(body, []byte(`"metadata":{`), fmt.Appendf(nil, `"metadata":{"resourceVersion":"%d",`, at), 1)
	}
	var answer bytes.Buffer
	if _, err := c.s.client(worker).Do(ctx, method, path, body, &answer); err != nil {
		return c.instead(ctx, worker, key, at, err)
	}
	return measure.Answer{OK: true, At: apiload.IntField(answer.Bytes(), "resourceVersion")}, nil
}

// Delete implements measure.Store. The answer does not say at which revision the object was deleted.
func (c *churned) Delete(ctx context.Context, worker, key int, at int64) (measure.Answer, error) {
	body := fmt.Appendf(nil, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, at)
	if _, err := c.s.client(worker).Do(ctx, http.MethodDelete, c.path(key), body, nil); err != nil {
		return c.instead(ctx, worker, key, at, err)
	}
	return measure.Answer{OK: true, At: at + 1}, nil
}

// instead finds out what is there, if a write failed because it was not what was expected.
func (c *churned) instead(ctx context.Context, worker, key int, at int64, err error) (measure.Answer, error) {
	gone := measure.Answer{At: at + 1} // some time after it was at this revision
	switch {
	case codeOf(err) == http.StatusNotFound && at != 0:
		return gone, nil
	case codeOf(err) != http.StatusConflict:
		return measure.Answer{}, err
	}
	var answer bytes.Buffer
	if _, err := c.s.client(worker).Do(ctx, http.MethodGet, c.path(key), nil, &answer); err != nil {
		if codeOf(err) == http.StatusNotFound && at != 0 {
			return gone, nil
		}
		return measure.Answer{}, nil // nothing was written, and what is there is learned another time
	}
	revision := apiload.IntField(answer.Bytes(), "resourceVersion")
	return measure.Answer{At: revision, Revision: revision, N: int(apiload.IntField(answer.Bytes(), "n"))}, nil
}
