package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/etcd"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/memory"
)

// etcdRun is a running server of etcd's API.
type etcdRun struct {
	o         *etcdOptions
	listeners []etcd.Listener
	pages     []etcd.Listener // for nothing else
	database  etcdDatabase
	server    *etcd.Server
	transport *etcd.Transport

	work sync.WaitGroup // in the background
	end  context.CancelFunc
}

// run serves until ctx ends, then stops gracefully. more, which may be nil, adds pages. begun is
// called when the server is ready: what it says must not hide why a start has failed.
func (o *etcdOptions) run(ctx context.Context, stdout io.Writer, more func(*http.ServeMux), begun func()) error {
	silence := logging.Libraries(o.logger, o.logging.Verbosity)
	limitMemory(0, o.logger)
	defer memory.Keep()()
	start := time.Now()
	r := &etcdRun{o: o}
	err := inTime(ctx, func() error { return r.open(ctx, more) })
	if err != nil && ctx.Err() != nil {
		o.logger.Info("stopped before plinth was ready", "err", oneLine(err))
		return nil
	}
	if err != nil {
		r.close()
		return err
	}
	begun()
	urls := r.urls()
	o.logger.Info("ready", "urls", strings.Join(urls, ","), "database", dialects.Describe(r.database.dsn), "new", r.database.log.Made(), "took", time.Since(start))
	fmt.Fprintf(stdout, "%s   # serving etcd's API from %s\n", r.environment(), dialects.Describe(r.database.dsn))
	notify(o.logger, readyState(urls[0]))
	<-ctx.Done()
	o.logger.Info("stopping", "reason", context.Cause(ctx))
	notify(o.logger, stoppingState)
	silence()
	return r.stop()
}

// open listens, opens the database and serves.
func (r *etcdRun) open(ctx context.Context, more func(*http.ServeMux)) (err error) {
	if r.listeners, err = listenAll(r.o.listen); err != nil {
		return err
	}
	if r.pages, err = listenAll(slices.Concat(r.o.listenHTTP, r.o.listenMetrics)); err != nil {
		return err
	}
	for i := range r.pages {
		r.pages[i].PagesOnly = true
	}
	if r.o.transport.TLS, err = r.o.tls.config(r.o.dataDir, r.hosts()); err != nil {
		return err
	}
	if r.database, err = r.o.openDatabase(ctx); err != nil {
		return err
	}
	r.o.server.Log, r.o.server.ClientURLs = r.o.logger, r.advertised()
	r.server = etcd.New(r.database.store, r.database.log, r.o.server)
	pages := http.NewServeMux()
	pages.Handle("/", r.server.Pages())
	if more != nil {
		more(pages)
	}
	r.transport = etcd.NewTransport(r.server, pages, r.o.transport)
	r.begin()
	return nil
}

// begin starts to serve, and the work in the background.
func (r *etcdRun) begin() {
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	r.work.Go(func() { r.server.Run(ctx) })
	r.work.Go(func() { r.o.tls.run(ctx, r.o.logger) })
	r.work.Go(func() { r.o.compaction.run(ctx, r.database.store, r.o.logger) })
	r.work.Go(func() { r.database.mark.Keep(ctx, r.database.store.Revision, r.o.logger) })
	r.transport.Serve(slices.Concat(r.listeners, r.pages)...)
}

func listenAll(urls []string) (all []etcd.Listener, err error) {
	for _, text := range urls {
		a, err := etcd.ParseAddress(strings.TrimSpace(text))
		if err != nil {
			return all, err // check has found it before
		}
		l, err := a.Listen()
		if err != nil {
			return all, fmt.Errorf("listen on %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

// stop ends the requests, then the work in the background, then closes the database.
func (r *etcdRun) stop() error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), r.o.shutdownTimeout)
	defer cancel()
	err := r.transport.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("requests that were still running have been cut off: %w", err)
	}
	r.end()
	r.work.Wait()
	err = errors.Join(err, r.database.store.Close())
	if err != nil {
		r.o.logger.Warn("stopped", "took", time.Since(begun), "err", err)
		return err
	}
	r.o.logger.Info("stopped", "took", time.Since(begun))
	return nil
}

// close undoes an open that has failed.
func (r *etcdRun) close() {
	for _, l := range slices.Concat(r.listeners, r.pages) {
		l.Close()
	}
	if r.database.store != nil {
		r.database.store.Close()
	}
}

// urls are those that clients on this machine use.
func (r *etcdRun) urls() (urls []string) {
	for _, l := range r.listeners {
		urls = append(urls, l.URL)
	}
	return urls
}

// environment is what etcdctl needs to find the server, for a shell.
func (r *etcdRun) environment() string {
	text := "export ETCDCTL_ENDPOINTS=" + shellQuote(strings.Join(r.urls(), ","))
	file := func(name string) string {
		return shellQuote(absolutePath(filepath.Join(r.o.tls.directory(r.o.dataDir), name)))
	}
	if r.o.tls.auto {
		text += " ETCDCTL_CACERT=" + file("ca.crt")
	}
	if r.o.tls.letsOwnClientIn() {
		text += " ETCDCTL_CERT=" + file("admin.crt") + " ETCDCTL_KEY=" + file("admin.key")
	}
	return text
}

func absolutePath(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

// hosts are the names and addresses that clients may find the server by.
func (r *etcdRun) hosts() (hosts []string) {
	for _, text := range append(r.advertised(), r.urls()...) {
		u, err := url.Parse(text)
		switch {
		case err != nil:
		case u.Scheme == "unix" || u.Scheme == "unixs": // etcd's clients take the file's name for that of the server
			if name := path.Base(u.Host + u.Path); len(validation.IsDNS1123Subdomain(name)) == 0 {
				hosts = append(hosts, name)
			}
		case u.Hostname() != "":
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// advertised are the URLs that the member tells clients: those of the flag, or those that it listens
// on, with an address of this machine in place of all of them.
func (r *etcdRun) advertised() (urls []string) {
	if len(r.o.advertise) > 0 {
		return r.o.advertise
	}
	for _, l := range r.listeners {
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
			scheme, _, _ := strings.Cut(l.URL, "://")
			urls = append(urls, scheme+"://"+net.JoinHostPort(machineAddress(), fmt.Sprint(tcp.Port)))
			continue
		}
		urls = append(urls, l.URL)
	}
	return urls
}

// machineAddress is an address of this machine that others may reach, or its own name for itself.
func machineAddress() string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "localhost"
}
