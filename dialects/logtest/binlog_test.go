package logtest

import (
	"context"
	"sync"
	"testing"
)

// TestBinlog has MariaDB write a binary log for replicas of its own, synced by groups of commits that wait
// for each other, and kills it under the load of two writers.
func TestBinlog(t *testing.T) {
	server := StartMariaDB(t)
	err := server.Use("--log-bin=binlog", "--server-id=5", "--sync-binlog=1", "--binlog-commit-wait-count=4", "--binlog-commit-wait-usec=5000")
	if err != nil {
		t.Fatal(err)
	}
	dsn := CreateDatabase(t, server)
	var loaders []*loader
	for i := range 2 {
		l := log{openDSN(t, dsn), t}
		defer l.Close()
		loaders = append(loaders, &loader{log: l, end: []string{"-a", "-b"}[i], stop: make(chan struct{}), done: make(chan struct{})})
		go loaders[i].run()
	}
	grown := func(l *loader) {
		within(t, "writes", func(ctx context.Context) error { return grow(ctx, l.log, 20) })
	}
	grown(loaders[0])
	server.Kill()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range loaders {
		wg.Go(func() { grown(w) })
	}
	wg.Wait()
	for _, w := range loaders {
		close(w.stop)
		<-w.done
	}
	for _, w := range loaders {
		w.compare(t)
	}
	log{loaders[0].log, t}.check()
}
