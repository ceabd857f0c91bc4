package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
)

// checkTimeout is the longest time for a check of a page.
const checkTimeout = 7 * time.Second

// Pages serves what etcd serves over plain HTTP: versions, health checks and metrics.
func (s *Server) Pages() http.Handler {
	mux := http.NewServeMux()
	page := func(path string, h http.HandlerFunc) { mux.HandleFunc(path, onlyGet(h)) }
	page("/version", s.versionPage)
	page("/health", s.healthPage)
	mux.Handle("/metrics", s.metrics.handler())
	for name, checks := range map[string][]pageCheck{"livez": s.liveChecks(), "readyz": s.readyChecks()} {
		page("/"+name, s.checksPage(name, checks))
		for _, c := range checks {
			page("/"+name+"/"+c.name, s.checksPage(name, []pageCheck{c}))
		}
	}
	return mux
}

func onlyGet(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	}
}

func (s *Server) versionPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.Marshal(version.Versions{Server: Version, Cluster: clusterVersion, Storage: storageVersion})
	_, _ = w.Write(text)
}

// healthAnswer is the answer of /health.
type healthAnswer struct {
	Health string `json:"health"` // "true" or "false"
	Reason string `json:"reason"`
}

func (s *Server) healthPage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	answer := healthAnswer{Health: "true"}
	if reason := s.problem(r.Context(), query["exclude"], query.Get("serializable") == "true"); reason != "" {
		answer = healthAnswer{Health: "false", Reason: reason}
	}
	text, _ := json.Marshal(answer)
	if answer.Reason != "" {
		s.metrics.unhealthy.Inc()
		http.Error(w, string(text), http.StatusServiceUnavailable)
		return
	}
	s.metrics.healthy.Inc()
	_, _ = w.Write(text)
}

// problem returns what is wrong; empty: nothing. A serializable check asks only this member, and not the
// database.
func (s *Server) problem(ctx context.Context, exclude []string, serializable bool) string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	alarms, err := s.alarmsForChecks(ctx, serializable)
	if err == nil {
		for _, a := range alarms {
			if !slices.Contains(exclude, a.Alarm.String()) {
				return alarmReason(a.Alarm)
			}
		}
		err = s.readable(ctx, serializable)
	}
	if err != nil {
		return "RANGE ERROR:" + err.Error()
	}
	return ""
}

func alarmReason(t pb.AlarmType) string {
	switch t {
	case pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT:
		return "ALARM " + t.String()
	}
	return "ALARM UNKNOWN"
}

// alarmsForChecks returns the alarms that this member knows or, if the database may be queried, all alarms.
func (s *Server) alarmsForChecks(ctx context.Context, serializable bool) ([]*pb.AlarmMember, error) {
	if known := s.alarms.known.Load(); serializable || known != nil && s.log.Exclusive() {
		if known == nil {
			return nil, nil
		}
		return *known, nil
	}
	return s.readAlarms(ctx)
}

// readable returns the error of a read, if it would fail.
func (s *Server) readable(ctx context.Context, serializable bool) error {
	if serializable {
		return nil // reads are answered from memory
	}
	if err := s.usable(); err != nil {
		return err
	}
	_, err := s.store.Sync(ctx)
	return err
}

// pageCheck is one check of /livez or /readyz.
type pageCheck struct {
	name string
	run  func(context.Context) error
}

func (s *Server) liveChecks() []pageCheck {
	return []pageCheck{{"serializable_read", func(ctx context.Context) error { return s.readable(ctx, true) }}}
}

func (s *Server) readyChecks() []pageCheck {
	return []pageCheck{
		{"data_corruption", s.checkCorrupt},
		{"serializable_read", func(ctx context.Context) error { return s.readable(ctx, true) }},
		{"linearizable_read", func(ctx context.Context) error { return s.readable(ctx, false) }},
		{"non_learner", func(context.Context) error { return nil }},
	}
}

func (s *Server) checkCorrupt(ctx context.Context) error {
	alarms, err := s.alarmsForChecks(ctx, true)
	if slices.ContainsFunc(alarms, func(a *pb.AlarmMember) bool { return a.Alarm == pb.AlarmType_CORRUPT }) {
		err = errors.New("alarm activated: " + pb.AlarmType_CORRUPT.String())
	}
	return err
}

func (s *Server) checksPage(page string, checks []pageCheck) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		var text strings.Builder
		failed := false
		for _, c := range checks {
			if len(checks) > 1 && slices.Contains(query["exclude"], c.name) {
				continue
			}
			result := "success"
			if err := c.run(ctx); err != nil {
				result, failed = "error", true
				fmt.Fprintf(&text, "[-]%s failed: %v\n", c.name, err)
			} else {
				fmt.Fprintf(&text, "[+]%s ok\n", c.name)
			}
			s.metrics.checks.WithLabelValues(page, c.name, result).Inc()
		}
		if failed {
			http.Error(w, text.String(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !query.Has("verbose") {
			text.Reset()
		}
		_, _ = fmt.Fprint(w, text.String(), "ok\n")
	}
}
