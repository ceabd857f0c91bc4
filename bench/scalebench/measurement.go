package scalebench

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	namespace = "plinth-bench"
	path      = "/api/v1/namespaces/" + namespace + "/configmaps"

	// writesPerSecond is the pace of changes while watches are measured.
	writesPerSecond = 50
)

// measurement is that of one database. Its plinth starts anew with each number of objects.
type measurement struct {
	*run
	apiload.Clients
	d     *Database
	own   *measure.Own
	count int // of objects
	made  atomic.Int64
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
	if m.Clients == nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
		body := []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"` + namespace + `"}}`)
		if _, err := m.Clients[0].Do(ctx, http.MethodPost, "/api/v1/namespaces", body, nil); err != nil {
			return err
		}
	}
	first, done := m.count, atomic.Int64{}
	l, err := measure.Each(ctx, measure.Concurrent, count-first, func(ctx context.Context, i int) error {
		if n := done.Add(1); n%1000 == 0 {
			m.progress.Say("%s: %s objects: created %s", m.d.Name, figures.Number(float64(count)), figures.Number(float64(first)+float64(n)))
		}
		_, err := m.Of(i).Do(ctx, http.MethodPost, path, apiload.ConfigMap(name(first+i), 0, i), nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	m.count = count
	m.d.add(rowFill, l.Rate())
	return nil
}

func (m *measurement) connect(ctx context.Context) (err error) {
	m.Clients, err = apiload.DialFile(ctx, m.own.Kubeconfig, measure.Connections, "/readyz")
	return err
}

func (m *measurement) measureStart(ctx context.Context) error {
	m.Close()
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
func (m *measurement) one(ctx context.Context, row string, do apiload.Operation) error {
	l, err := measure.ClosedLoop(ctx, 1, m.scale.round, do)
	if err != nil {
		return err
	}
	m.d.add(row, figures.LatencyOf(l.Samples).P50)
	return nil
}

// any returns a function that goes through all objects, by their numbers.
func (m *measurement) any() func() int {
	turn := -1
	return func() int { turn++; return turn * 7919 % m.count }
}

func (m *measurement) measureGet(ctx context.Context) error {
	next := m.any()
	return m.one(ctx, rowGet, m.Get(func(int) string { return path + "/" + name(next()) }))
}

// measureLists measures lists of which each has to have all that it selects.
func (m *measurement) measureLists(ctx context.Context) error {
	byLabel := m.List(path+"?"+apiload.PartSelector(7), apiload.ConfigMaps, m.count/apiload.Parts)
	begun := time.Now()
	if err := byLabel(ctx, 0); err != nil {
		return err
	}
	m.d.add(rowFirstLabel, figures.Millis(time.Since(begun)))
	for _, l := range []struct {
		row string
		do  apiload.Operation
	}{
		{rowLabel, byLabel},
		{rowField, m.List(path+"?fieldSelector=metadata.name%3D"+name(m.count/2), apiload.ConfigMaps, 1)},
		{rowPage, m.Pages(path, m.scale.page, m.count)},
		{rowWhole, func(ctx context.Context, _ int) error {
			n, err := m.Clients[0].Do(ctx, http.MethodGet, path, nil, nil) // it may not fit into memory twice
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

// measureWrites creates objects, which it deletes again, and updates.
func (m *measurement) measureWrites(ctx context.Context) error {
	next, turn := m.any(), 0
	update := func(ctx context.Context, _ int) error {
		turn++
		i := next()
		_, err := m.Clients[0].Do(ctx, http.MethodPut, path+"/"+name(i), apiload.ConfigMap(name(i), turn, i), nil)
		return err
	}
	if err := m.one(ctx, rowUpdate, update); err != nil {
		return err
	}
	var made []string
	create := m.Create(path, func(int) []byte {
		made = append(made, fmt.Sprintf("new-%07d", m.made.Add(1)))
		return apiload.ConfigMap(made[len(made)-1], 0, 0)
	})
	if err := m.one(ctx, rowCreate, create); err != nil {
		return err
	}
	_, err := measure.Each(ctx, measure.Concurrent, len(made), func(ctx context.Context, i int) error {
		_, err := m.Of(i).Do(ctx, http.MethodDelete, path+"/"+made[i], nil, nil)
		return err
	})
	return err
}

// measureWatch measures the time from sending an update to receiving its event, and counts what is lost.
func (m *measurement) measureWatch(ctx context.Context) error {
	a, err := m.Seat(ctx, m.scale.watches, 1, func(uint8) string { return path })
	if err != nil {
		return err
	}
	v, err := a.Measure(ctx, m.scale.writes, writesPerSecond, func(ctx context.Context, n int) error {
		at := name(n)
		body := apiload.Stamp(apiload.ConfigMap(at, n, n))
		_, err := m.Of(n).Do(ctx, http.MethodPut, path+"/"+at, body, nil)
		return err
	})
	if err != nil {
		return err
	}
	if faults := v.Faults(error.Error); faults.Value > 0 {
		return fmt.Errorf("events of watches are missing: %s", faults.Note)
	}
	if l := figures.LatencyOf(v.Delay().Samples); l != nil {
		m.d.add(rowWatch, l.P50)
	}
	return nil
}
