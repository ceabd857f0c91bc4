package etcd

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestDocumentedMetrics compares the table of docs/etcd.md with the metrics of a member. Those of alarms, checks and
// answers are there when there has been one.
func TestDocumentedMetrics(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	if _, err := pb.NewMaintenanceClient(m.conn).Alarm(patiently(t), &pb.AlarmRequest{Action: alarmOn, Alarm: alarmFull}); err != nil {
		t.Fatal(err)
	}
	page := func(path string) string {
		w := httptest.NewRecorder()
		m.Pages().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Body.String()
	}
	page("/readyz")
	text := page("/metrics")
	exported := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(text, -1) {
		exported[found[1]] = true
	}
	documentation, err := os.ReadFile(filepath.Join("..", "..", "docs", "etcd.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(documentation), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			documented = append(documented, strings.Trim(name, "`"))
		}
	}
	if len(documented) == 0 || len(exported) == 0 {
		t.Fatalf("documented: %v, exported: %v", documented, exported)
	}
	matches := func(pattern, name string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		if !slices.ContainsFunc(documented, func(pattern string) bool { return matches(pattern, name) }) {
			t.Errorf("docs/etcd.md lacks %s", name)
		}
	}
	for _, pattern := range documented {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(exported)), func(name string) bool { return matches(pattern, name) }) {
			t.Errorf("docs/etcd.md has %s, which is not exported", pattern)
		}
	}
}
