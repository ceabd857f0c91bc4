package fairness

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol/debug"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// memory is what upstream has decided about requests, so that it need not decide the same again: it
// compares a request with one FlowSchema after another. What it remembers is true until upstream
// changes a level, which it also does whenever a FlowSchema has changed.
type memory struct {
	epoch atomic.Int64 // grows with every change

	mu    sync.RWMutex                      // guards what follows
	known map[string]map[question]*decision // by the user's name
	size  int                               // how many decisions there are
	of    int64                             // the epoch that they are of
}

// question has all that FlowSchemas can tell the requests of a user apart by, but for the user's
// groups.
type question struct {
	verb, group, resource, part, namespace string
	path                                   string // of a request that is not for a resource
}

// Clients choose parts of questions. These bound what remembering costs.
const (
	mostKnown    = 4096
	longQuestion = 1024
)

// decision is where a kind of request belongs.
type decision struct {
	groups        []string // of the user
	distinguisher string
	level         *level // set by the level itself: see level.StartRequest
	exempt        bool
	names         names
	headers       [2][]string // UIDs of level and FlowSchema
	epoch         int64
}

// names of a priority level and a FlowSchema.
type names struct{ level, schema string }

func questionOf(info *apirequest.RequestInfo) question {
	q := question{verb: info.Verb}
	if info.IsResourceRequest {
		q.group, q.resource, q.part, q.namespace = info.APIGroup, info.Resource, info.Subresource, info.Namespace
	} else {
		q.path = info.Path
	}
	return q
}

// recall returns what was decided about such a request, nil if it is not known.
func (m *memory) recall(q question, who user.Info) *decision {
	m.mu.RLock()
	d := m.known[who.GetName()][q]
	m.mu.RUnlock()
	if d == nil || d.epoch != m.epoch.Load() || !slices.Equal(d.groups, who.GetGroups()) {
		return nil
	}
	return d
}

// decided returns upstream's decision as what can be remembered. It is called with upstream's lock
// held, so that the epoch is that of the decision.
func (m *memory) decided(schema *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, distinguisher string, who user.Info) *decision {
	return &decision{
		groups: who.GetGroups(), distinguisher: strings.Clone(distinguisher), epoch: m.epoch.Load(),
		exempt:  pl.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt,
		names:   names{level: pl.Name, schema: schema.Name},
		headers: [2][]string{{string(pl.UID)}, {string(schema.UID)}},
	}
}

// remember keeps a decision. Names are copied, because they may be parts of large headers.
func (m *memory) remember(q question, who user.Info, d *decision) {
	name := who.GetName()
	parts := []*string{&name, &q.verb, &q.group, &q.resource, &q.part, &q.namespace, &q.path}
	long := 0
	for _, p := range parts {
		long += len(*p)
	}
	if long > longQuestion || d.level == nil {
		return
	}
	for _, p := range parts {
		*p = strings.Clone(*p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || m.of != d.epoch {
		m.known, m.size, m.of = map[string]map[question]*decision{}, 0, d.epoch
	}
	if m.known[name][q] == nil {
		m.makeRoom(name)
		m.size++
	}
	if m.known[name] == nil {
		m.known[name] = map[question]*decision{}
	}
	m.known[name][q] = d
}

// makeRoom forgets a decision if there are too many: one about name, or one about another user if
// name has less than an equal share. So a client that asks thousands of different questions pushes
// out decisions about itself, and none about other users. m.mu is held.
func (m *memory) makeRoom(name string) {
	if m.size < mostKnown {
		return
	}
	share := (m.size + len(m.known) - 1) / len(m.known)
	if len(m.known[name]) >= share {
		m.drop(name)
		return
	}
	for other, decisions := range m.known {
		if len(decisions) >= share { // somebody has
			m.drop(other)
			return
		}
	}
}

// drop forgets any one decision about a user; m.mu is held.
func (m *memory) drop(name string) {
	for q := range m.known[name] {
		delete(m.known[name], q)
		m.size--
		break
	}
	if len(m.known[name]) == 0 {
		delete(m.known, name)
	}
}

// forget makes all that was decided before unknown. It is called with upstream's lock held.
func (m *memory) forget() { m.epoch.Add(1) }

// ticket is a request that has passed by the queues, and its seat. But for left it does not change
// once its level has it, which shows it on the debug pages.
type ticket struct {
	decision *decision
	width    fcrequest.WorkEstimate
	begun    time.Time
	who      user.Info
	info     *apirequest.RequestInfo
	metrics  *counts
	left     atomic.Bool
}

func (t *ticket) dump(details bool) debug.RequestDump {
	d := debug.RequestDump{
		MatchedFlowSchema: t.decision.names.schema, FlowDistinguisher: t.decision.distinguisher,
		ArriveTime: t.begun, StartTime: t.begun, WorkEstimate: t.width,
	}
	if details {
		d.UserName, d.RequestInfo = t.who.GetName(), *t.info
	}
	return d
}
