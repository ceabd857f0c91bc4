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

func (r *run) measureWatch(ctx context.Context) error {
	pace := fmt.Sprintf("%d watchers, %d writes/s", r.scale.churn.Watches, writesPerSecond)
	rounds := 0
	return r.Compare(ctx, r.scale.watchRounds, false, func(ctx context.Context, s *server) ([]figures.Sample, error) {
		rounds++
		prefix := fmt.Sprintf("watched-%03d-", rounds)
		a, err := s.Seat(ctx, r.scale.churn.Watches, 1, func(uint8) string { return s.configMaps() })
		if err != nil {
			return nil, err
		}
		before, known := measure.Spend(s.PIDs)
		v, err := a.Measure(ctx, int(r.scale.watch.Seconds()*writesPerSecond), writesPerSecond, func(ctx context.Context, n int) error {
			body := apiload.Stamp(apiload.ConfigMap(fmt.Sprintf("%s%06d", prefix, n), n, n))
			_, err := s.Of(n).Do(ctx, http.MethodPost, s.configMaps(), body, nil)
			return err
		})
		after, _ := measure.Spend(s.PIDs)
		cpu := figures.Millis(after.Since(before).CPU) / float64(max(v.Expected, 1))
		return []figures.Sample{v.Delay(), v.Faults(measure.Plain), {Value: cpu, None: !known}}, err
	}, &figures.Row{What: "watch, " + pace + ": p99 delay", Unit: "ms", Less: true}, measure.FaultsRow(),
		&figures.Row{What: "watch: CPU of the server", Unit: "ms/event", Less: true})
}

// measureChurn lets writers and watches work. Each watch is of the objects of a part, which a label says.
func (r *run) measureChurn(ctx context.Context) error {
	return r.MeasureChurn(ctx, r.scale.churn, func(ctx context.Context, s *server, c *measure.Churn) (err error) {
		c.Store, c.Footprint = &churned{s, c.Resources}, s.footprint
		c.Audience, err = s.Seat(ctx, c.Watches, c.Resources, func(part uint8) string {
			return s.configMaps() + "?" + apiload.PartSelector(int(part))
		})
		return err
	})
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
	if _, err := c.s.Of(worker).Do(ctx, method, path, body, &answer); err != nil {
		return c.instead(ctx, worker, key, at, err)
	}
	return measure.Answer{OK: true, At: apiload.IntField(answer.Bytes(), "resourceVersion")}, nil
}

// Delete implements measure.Store. The answer does not say at which revision the object was deleted.
func (c *churned) Delete(ctx context.Context, worker, key int, at int64) (measure.Answer, error) {
	body := fmt.Appendf(nil, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, at)
	if _, err := c.s.Of(worker).Do(ctx, http.MethodDelete, c.path(key), body, nil); err != nil {
		return c.instead(ctx, worker, key, at, err)
	}
	return measure.Answer{OK: true, At: at + 1}, nil
}

// instead finds out what is there, if a write failed because it was not what was expected.
func (c *churned) instead(ctx context.Context, worker, key int, at int64, err error) (measure.Answer, error) {
	gone := measure.Answer{At: at + 1} // some time after it was at this revision
	switch {
	case apiload.Code(err) == http.StatusNotFound && at != 0:
		return gone, nil
	case apiload.Code(err) != http.StatusConflict:
		return measure.Answer{}, err
	}
	var answer bytes.Buffer
	if _, err := c.s.Of(worker).Do(ctx, http.MethodGet, c.path(key), nil, &answer); err != nil {
		if apiload.Code(err) == http.StatusNotFound && at != 0 {
			return gone, nil
		}
		return measure.Answer{}, nil // nothing was written, and what is there is learned another time
	}
	revision := apiload.IntField(answer.Bytes(), "resourceVersion")
	return measure.Answer{At: revision, Revision: revision, N: int(apiload.IntField(answer.Bytes(), "n"))}, nil
}
