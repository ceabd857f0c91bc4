package etcdbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// measureStart measures how long plinth takes until it answers, on an empty database.
func (r *run) measureStart(ctx context.Context) error {
	if len(r.DSNs) == 0 {
		return nil
	}
	row := &Row{What: "start to the first answer, empty", Unit: "ms", Less: true}
	r.report.Rows = append(r.report.Rows, row)
	for i := range r.scale.starts {
		for _, dsn := range r.DSNs {
			name := dialects.Scheme(dsn)
			r.progress.Say("%s: start, %d of %d", name, i+1, r.scale.starts)
			e, err := r.startOwn(ctx, dsn)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			c := row.cell(name)
			c.rounds = append(c.rounds, measure.Millis(e.own.took))
			if err := errors.Join(e.close(ctx), ctx.Err()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// measureMemory measures resident memory with all keys, and then the CPU time of doing nothing.
func (r *run) measureMemory(ctx context.Context) error {
	sleep(ctx, r.scale.settle)
	keys := measure.Number(float64(r.scale.keys))
	memory := &Row{What: fmt.Sprintf("memory, %s keys of 1 KiB", keys), Unit: "MiB", Less: true, targets: memoryTargets}
	idle := &Row{What: fmt.Sprintf("idle CPU, %s keys", keys), Unit: "ms/s", Less: true}
	before := map[*endpoint]spent{}
	err := r.compare(ctx, 1, false, func(_ context.Context, e *endpoint) ([]sample, error) {
		before[e], _ = spend(e.pids)
		s, known := spend(e.pids[:min(len(e.pids), 1)])
		return []sample{{
			value: mebibytes(s.rss), none: !known,
			note: measure.Number(mebibytes(s.private)) + " MiB without pages of files",
		}}, nil
	}, memory)
	if err != nil {
		return err
	}
	r.progress.Say("idle")
	sleep(ctx, r.scale.idle)
	return r.compare(ctx, 1, false, func(_ context.Context, e *endpoint) ([]sample, error) {
		s, known := spend(e.pids)
		used := measure.Millis(s.cpu - before[e].cpu)
		return []sample{{value: used / r.scale.idle.Seconds(), none: !known}}, nil
	}, idle)
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
