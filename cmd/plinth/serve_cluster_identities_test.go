package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// componentUsers says, for each program, who it may be. None of them is a member of system:masters.
var componentUsers = map[string]*regexp.Regexp{
	"kube-controller-manager": regexp.MustCompile(`^system:kube-controller-manager$|^system:serviceaccount:kube-system:[a-z-]+$`),
	"kube-scheduler":          regexp.MustCompile(`^system:kube-scheduler$`),
	"kubelet":                 regexp.MustCompile(`^system:node:(node-1|worker-1|[0-9.]+)$|^system:bootstrap:[a-z0-9]{6}$`),
	"kwok":                    regexp.MustCompile(`^kwok$`),
}

// controllerAccounts are some of the service accounts that the controller manager has for its
// controllers.
var controllerAccounts = []string{
	"certificate-controller", "cronjob-controller", "daemon-set-controller", "deployment-controller", "disruption-controller",
	"endpointslice-controller", "generic-garbage-collector", "horizontal-pod-autoscaler", "job-controller", "namespace-controller",
	"node-controller", "pod-garbage-collector", "replicaset-controller", "root-ca-cert-publisher", "service-account-controller",
	"statefulset-controller", "token-cleaner", "ttl-after-finished-controller",
}

// testIdentities reads in the audit log as whom each component has sent its requests, and which of
// them were refused.
func testIdentities(t *testing.T, c *realCluster) {
	seen := map[string]map[string]bool{} // users by program
	anywhere := map[string]bool{}
	for event := range c.audited(t) {
		program, _, _ := strings.Cut(event.UserAgent, "/")
		user := event.User.Username
		anywhere[user] = true
		if componentUsers[program] == nil || joins(event) {
			continue
		}
		if seen[program] == nil {
			seen[program] = map[string]bool{}
		}
		if !seen[program][user] && (!componentUsers[program].MatchString(user) || slices.Contains(event.User.Groups, "system:masters")) {
			t.Errorf("%s is %s in %v", program, user, event.User.Groups)
		}
		seen[program][user] = true
		if strings.HasPrefix(user, "system:bootstrap:") && (event.ObjectRef == nil || event.ObjectRef.Resource != "certificatesigningrequests") {
			t.Errorf("%s, with a bootstrap token, asked for %s %s", program, event.Verb, event.RequestURI)
		}
		if refused(event) {
			t.Errorf("%s, as %s, got %d for %s %s: %s", program, user, event.ResponseStatus.Code, event.Verb, event.RequestURI, event.ResponseStatus.Message)
		}
	}
	for program := range componentUsers {
		t.Logf("%s: %q", program, slices.Sorted(maps.Keys(seen[program])))
		if len(seen[program]) == 0 {
			t.Errorf("%s has sent no request", program)
		}
	}
	for _, account := range controllerAccounts {
		user := "system:serviceaccount:kube-system:" + account
		if !seen["kube-controller-manager"][user] && !(c.inside && anywhere[user]) { // some are plinth's own
			t.Errorf("no request of the controller manager is of the account %s", account)
		}
	}
}

// joins tells whether a kubelet sent the request before it had a certificate. Until then it is
// nobody, and reads nothing.
func joins(event *auditv1.Event) bool {
	return event.User.Username == "system:anonymous" && strings.HasPrefix(event.UserAgent, "kubelet/") &&
		event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden
}

// refused tells whether a component got an error that it should not get. No request may fail for lack
// of a right. A kubelet's may fail only because an object is there already, is gone or has changed, or because the kubelet
// did not wait as long as it took: many of its requests have two seconds.
func refused(event *auditv1.Event) bool {
	switch status := event.ResponseStatus; {
	case status == nil || status.Code < http.StatusBadRequest:
		return false
	case status.Code == http.StatusForbidden:
		return event.Annotations["authorization.k8s.io/decision"] == "forbid" && !ofGonePod(event)
	default:
		return strings.HasPrefix(event.User.Username, "system:node:") &&
			!slices.Contains([]int32{http.StatusNotFound, http.StatusConflict, http.StatusGatewayTimeout}, status.Code)
	}
}

// ofGonePod tells whether a kubelet asked for a pod that was just deleted: the Node authorizer does
// not know any more on which node it was.
func ofGonePod(event *auditv1.Event) bool {
	return event.Verb == "get" && event.ObjectRef != nil && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "" &&
		strings.Contains(event.ResponseStatus.Message, "no relationship found")
}

// audited yields the events of the audit log.
func (c *realCluster) audited(t *testing.T) func(func(*auditv1.Event) bool) {
	files, err := filepath.Glob(filepath.Join(c.dir, "audit*.log"))
	must(t, err)
	return func(yield func(*auditv1.Event) bool) {
		for _, name := range files {
			if !eachEvent(t, name, yield) {
				return
			}
		}
	}
}

func eachEvent(t *testing.T, name string, yield func(*auditv1.Event) bool) bool {
	file, err := os.Open(name)
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := new(auditv1.Event)
		if err := json.Unmarshal(lines.Bytes(), event); err != nil {
			t.Logf("%s ends with %q", name, lines.Text()) // it is being written
			continue
		}
		if !yield(event) {
			return false
		}
	}
	must(t, lines.Err())
	return true
}

// Controller manager and scheduler ask plinth, with their own rights, who their clients are and
// what these may do.
func testDelegation(t *testing.T, c *realCluster) {
	token := strings.TrimSpace(c.run(t, "kubectl", "create", "token", "default"))
	for program, port := range map[string]string{"kube-controller-manager": c.manager, "kube-scheduler": c.scheduler} {
		for client, test := range map[string]struct {
			token  string
			status int
			body   string
		}{
			"the admin":         {"", http.StatusOK, "workqueue_depth"},
			"nobody":            {"nonsense", http.StatusUnauthorized, "Unauthorized"},
			"a service account": {token, http.StatusForbidden, `User \"system:serviceaccount:default:default\" cannot get path \"/metrics\"`},
		} {
			status, body := c.ask(t, "https://127.0.0.1:"+port+"/metrics", test.token)
			if status != test.status || !strings.Contains(body, test.body) {
				t.Errorf("%s gets %d of %s: %.200s", client, status, program, body)
			}
		}
	}
}
