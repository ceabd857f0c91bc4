package scalebench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	concurrent  = 64 // writers while objects are created
	connections = 8
	namespace   = "plinth-bench"
	path        = "/api/v1/namespaces/" + namespace + "/configmaps"

	// writesPerSecond is the pace of changes while watches are measured.
	writesPerSecond = 50
)

// measurement is that of one database. Its plinth starts anew with each number of objects.
type measurement struct {
	*run
	d       *Database
	own     *apiload.Own
	clients []*apiload.Client
	count   int // of objects
	made    atomic.Int64
}

func name(i int) string { return fmt.Sprintf("cm-%07d", i) }

// at fills the database up to a number of objects and measures everything.
func (m *measurement) at(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(count)*fillPatience)
	defer cancel()
	if err := m.fill(ctx, count); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"start", m.measureStart},
		{"memory", func(ctx context.Context) error { return m.measureMemory(ctx, rowMemory) }},
		{"get", m.measureGet},
		{"lists", m.measureLists},
		{"writes", m.measureWrites},
		{"watches", m.measureWatch},
		{"memory after the load", func(ctx context.Context) error { return m.measureMemory(ctx, rowMemoryAfter) }},
	} {
		m.progress.Say("%s: %s objects: %s", m.d.Name, figures.Number(float64(count)), step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// fill creates the objects that are missing.
func (m *measurement) fill(ctx context.Context, count int) error {
	if m.clients == nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
		body := []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"` + namespace + `"}}`)
		if _, err := m.clients[0].Do(ctx, http.MethodPost, "/api/v1/namespaces", body, nil); err != nil {
			return err
		}
	}
	first, done := m.count, atomic.Int64{}
	l, err := measure.Each(ctx, concurrent, count-first, func(ctx context.Context, i int) error {
		if n := done.Add(1); n%1000 == 0 {
			m.progress.Say("%s: %s objects: created %s", m.d.Name, figures.Number(float64(count)), figures.Number(float64(first)+float64(n)))
		}
		_, err := m.client(i).Do(ctx, http.MethodPost, path, apiload.ConfigMap(name(first+i), 0, i), nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	m.count = count
	m.d.add(rowFill, l.Rate())
	return nil
}

func (m *measurement) client(i int) *apiload.Client { return m.clients[i%len(m.clients)] }

func (m *measurement) connect(ctx context.Context) error {
	config, err := m.own.Config()
	if err != nil {
		return err
	}
	m.clients, err = apiload.Dial(ctx, config, connections, "/readyz")
	return err
}

func (m *measurement) measureStart(ctx context.Context) error {
	apiload.Close(m.clients)
	if err := m.own.Restart(ctx); err != nil {
		return err
	}
	m.d.add(rowStart, figures.Millis(m.own.Took))
	if m.own.Files != "" {
		bytes, err := measure.DiskUse(m.own.Files)
		if err != nil {
			return err
		}
		m.d.add(rowDisk, figures.MiB(bytes))
	}
	return m.connect(ctx)
}

// measureMemory is of plinth's process, if /proc tells.
func (m *measurement) measureMemory(ctx context.Context, row string) error {
	_ = sleep.For(ctx, m.scale.settle)
	if spent, ok := measure.Spend([]int{m.own.PID()}); ok {
		m.d.add(row, figures.MiB(spent.RSS))
	}
	return ctx.Err()
}

// one repeats a request, one at a time, and adds its median.
func (m *measurement) one(ctx context.Context, row string, do func(ctx context.Context, turn int) error) error {
	turn := -1
	l, err := measure.ClosedLoop(ctx, 1, m.scale.round, func(ctx context.Context, _ int) error {
		turn++
		return do(ctx, turn)
	})
	if err != nil {
		return err
	}
	m.d.add(row, figures.LatencyOf(l.Samples).P50)
	return nil
}

func (m *measurement) measureGet(ctx context.Context) error {
	return m.one(ctx, rowGet, func(ctx context.Context, turn int) error {
		_, err := m.clients[0].Do(ctx, http.MethodGet, path+"/"+name(turn*7919%m.count), nil, nil)
		return err
	})
}

// measureLists measures lists of which each has to have all that it selects.
func (m *measurement) measureLists(ctx context.Context) error {
	var answer bytes.Buffer
	list := func(query string, items int) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			if _, err := m.clients[0].Do(ctx, http.MethodGet, path+query, nil, &answer); err != nil {
				return err
			}
			if got := bytes.Count(answer.Bytes(), []byte(`"sent":"`)); got != items {
				return fmt.Errorf("list%s has %d objects instead of %d", query, got, items)
			}
			return nil
		}
	}
	byLabel := list("?"+apiload.PartSelector(7), m.count/apiload.Parts)
	begun := time.Now()
	if err := byLabel(ctx, 0); err != nil {
		return err
	}
	m.d.add(rowFirstLabel, figures.Millis(time.Since(begun)))
	for _, l := range []struct {
		row string
		do  func(context.Context, int) error
	}{
		{rowLabel, byLabel},
		{rowField, list("?fieldSelector=metadata.name%3D"+name(m.count/2), 1)},
		{rowPage, m.pages()},
		{rowWhole, func(ctx context.Context, _ int) error {
			n, err := m.clients[0].Do(ctx, http.MethodGet, path, nil, nil) // it may not fit into memory twice
			if err == nil && n < int64(m.count)*1024 {
				err = fmt.Errorf("a list of %d objects of 1 KiB has %d bytes", m.count, n)
			}
			return err
		}},
	} {
		if err := m.one(ctx, l.row, l.do); err != nil {
			return err
		}
	}
	return nil
}

// pages reads one page after the other, and begins again after the last.
func (m *measurement) pages() func(context.Context, int) error {
	var answer bytes.Buffer
	next, seen := "", 0
	return func(ctx context.Context, _ int) error {
		query := fmt.Sprintf("?limit=%d&continue=%s", m.scale.page, url.QueryEscape(next))
		if _, err := m.clients[0].Do(ctx, http.MethodGet, path+query, nil, &answer); err != nil {
			return err
		}
		seen += bytes.Count(answer.Bytes(), []byte(`"sent":"`))
		if next = apiload.TextField(answer.Bytes(), "continue"); next != "" {
			return nil
		}
		if seen != m.count {
			return fmt.Errorf("the pages have %d objects instead of %d", seen, m.count)
		}
		seen = 0
		return nil
	}
}

// measureWrites creates objects, which it deletes again, and updates.
func (m *measurement) measureWrites(ctx context.Context) error {
	update := func(ctx context.Context, turn int) error {
		at := name(turn * 7919 % m.count)
		body := apiload.ConfigMap(at, turn+1, turn*7919%m.count)
		_, err := m.clients[0].Do(ctx, http.MethodPut, path+"/"+at, body, nil)
		return err
	}
	if err := m.one(ctx, rowUpdate, update); err != nil {
		return err
	}
	var made []string
	create := func(ctx context.Context, _ int) error {
		made = append(made, fmt.Sprintf("new-%07d", m.made.Add(1)))
		_, err := m.clients[0].Do(ctx, http.MethodPost, path, apiload.ConfigMap(made[len(made)-1], 0, 0), nil)
		return err
	}
	if err := m.one(ctx, rowCreate, create); err != nil {
		return err
	}
	_, err := measure.Each(ctx, concurrent, len(made), func(ctx context.Context, i int) error {
		_, err := m.client(i).Do(ctx, http.MethodDelete, path+"/"+made[i], nil, nil)
		return err
	})
	return err
}

// measureWatch measures the time from sending an update to receiving its event, and counts what is lost.
func (m *measurement) measureWatch(ctx context.Context) error {
	a, err := apiload.Seat(ctx, m.clients, m.scale.watches, 1, func(uint8) string { return path })
	if err != nil {
		return err
	}
	defer a.End()
	err = a.WriteAtPace(ctx, m.scale.writes, writesPerSecond, func(ctx context.Context, n int) error {
		at := name(n)
		body := apiload.Stamp(apiload.ConfigMap(at, n, n))
		_, err := m.client(n).Do(ctx, http.MethodPut, path+"/"+at, body, nil)
		return err
	})
	if err != nil {
		return err
	}
	a.Settle(ctx)
	a.End()
	v := a.Judge()
	if faults := v.Faults(error.Error); faults.Value > 0 {
		return fmt.Errorf("events of watches are missing: %s", faults.Note)
	}
	if l := figures.LatencyOf(v.Delay().Samples); l != nil {
		m.d.add(rowWatch, l.P50)
	}
	return ctx.Err()
}
