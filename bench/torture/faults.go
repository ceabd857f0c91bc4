package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Database is a database server that a run may kill and freeze.
type Database interface {
	Kill()
	Start() error
	Freeze() error
	Thaw() error
}

// Names of faults.
const (
	kill       = "kill"        // kill -9 a replica, and start it again
	stop       = "stop"        // SIGSTOP a replica for longer than its patience, and continue it
	cutClients = "cut-clients" // break the connections of clients
	loseAnswer = "lose-answer" // lose what a replica answers
	cut        = "cut"         // break a replica's connections to the database
	freeze     = "freeze"      // hold back everything between a replica and the database
	delay      = "delay"       // delay everything between them by 50 to 500 ms
	loseCommit = "lose-commit" // lose the database's answer to a COMMIT
	killDB     = "kill-db"     // kill -9 the database, and start it again
	freezeDB   = "freeze-db"   // SIGSTOP the database, and continue it
)

// FaultNames returns the names of all faults, for Options.Faults.
func FaultNames() []string {
	return []string{kill, stop, cutClients, loseAnswer, cut, freeze, delay, loseCommit, killDB, freezeDB}
}

// Possible returns the names of the faults that a run with o can make, whatever o.Faults says.
func (o *Options) Possible() []string {
	return slices.DeleteFunc(FaultNames(), func(name string) bool {
		switch name {
		case cut, freeze, delay, loseCommit:
			return dialects.Scheme(o.DSN) == "sqlite" // there is no connection
		case killDB, freezeDB:
			return o.Database == nil
		}
		return false
	})
}

// chosen returns the faults that are made in this run.
func (r *run) chosen() []string {
	return slices.DeleteFunc(r.o.Possible(), func(name string) bool {
		return len(r.o.Faults) > 0 && !slices.Contains(r.o.Faults, name)
	})
}

// fail makes faults until the time is over, one after the other, in an order that the seed decides. At
// the end all is well.
func (r *run) fail(ctx context.Context, h *History, until time.Time) error {
	random := rand.New(rand.NewPCG(h.Seed, uint64(h.Round)+1<<32))
	names := r.chosen()
	if len(names) == 0 {
		_ = sleep.Until(ctx, until)
	}
	for len(names) > 0 {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			target := r.replicas[random.IntN(len(r.replicas))]
			m := maker{ctx, random, target, r.o.Database}
			m.wait(200, 800)
			if !time.Now().Before(until) || ctx.Err() != nil {
				return nil
			}
			f := Fault{Name: name, Replica: target.number, Begin: h.Now()}
			if err := m.make(name); err != nil {
				return fmt.Errorf("fault %s at replica %d: %w", name, target.number, err)
			}
			f.End = h.Now()
			h.addFault(f)
		}
	}
	return nil
}

// maker makes one fault, which is over when make returns.
type maker struct {
	ctx      context.Context
	rand     *rand.Rand
	replica  *replica
	database Database
}

// wait waits for a random number of milliseconds, or until the time is over.
func (m *maker) wait(least, most int) {
	_ = sleep.For(m.ctx, time.Duration(least+m.rand.IntN(most-least))*time.Millisecond)
}

// long is seldom longer than any timeout of plinth's.
func (m *maker) long() {
	if m.rand.IntN(4) == 0 {
		m.wait(6000, 12000)
	} else {
		m.wait(300, 2000)
	}
}

func (m *maker) make(name string) error {
	r := m.replica
	switch name {
	case kill:
		r.Kill()
		m.wait(0, 500)
		return r.start(m.ctx)
	case stop:
		r.Signal(syscall.SIGSTOP)
		m.long()
		r.Signal(syscall.SIGCONT)
	case cutClients:
		r.clients.Cut()
	case loseAnswer:
		r.clients.Lose(time.Duration(20+m.rand.IntN(200)) * time.Millisecond)
	case cut:
		r.database.Cut()
	case freeze:
		r.database.Block()
		m.long()
		r.database.Cut()
		r.database.Unblock()
	case delay:
		r.database.Slow(time.Duration(25+m.rand.IntN(225)) * time.Millisecond) // each way
		m.wait(1000, 3000)
		r.database.Slow(0)
	case loseCommit:
		if !r.database.LoseAfter(time.Second, 50*time.Millisecond, "commit\x00", "COMMIT", "commit") {
			r.database.Lose(100 * time.Millisecond) // it may be encrypted
		}
	case killDB:
		m.database.Kill()
		m.wait(0, 500)
		return m.database.Start()
	case freezeDB:
		if err := m.database.Freeze(); err != nil {
			return err
		}
		m.long()
		return m.database.Thaw()
	}
	return nil
}
