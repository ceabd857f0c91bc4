package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// createdByUpdate are the resources of which a PUT creates an absent object.
var createdByUpdate = map[string]bool{
	"clusterrolebindings": true, "clusterroles": true, "endpoints": true, "events": true, "leases": true,
	"limitranges": true, "rolebindings": true, "roles": true, "runtimeclasses": true, "services": true,
}

// conditionally are the resources of which a PUT must name a resourceVersion.
var conditionally = map[string]bool{
	"apiservices": true, "clustertrustbundles": true, "csidrivers": true, "csinodes": true, "csistoragecapacities": true,
	"devicetaintrules": true, "leases": true, "mutatingadmissionpolicies": true, "mutatingadmissionpolicybindings": true,
	"mutatingwebhookconfigurations": true, "podcertificaterequests": true, "poddisruptionbudgets": true,
	"runtimeclasses": true, "storageversionmigrations": true, "validatingadmissionpolicies": true,
	"validatingadmissionpolicybindings": true, "validatingwebhookconfigurations": true, "volumeattachments": true,
}

// counted are the resources whose generation the server counts. The others keep what
// their creator wrote there.
var counted = map[string]bool{
	"cronjobs": true, "daemonsets": true, "deployments": true, "deviceclasses": true, "devicetaintrules": true,
	"endpointslices": true, "flowschemas": true, "horizontalpodautoscalers": true, "ingressclasses": true,
	"ingresses": true, "jobs": true, "mutatingadmissionpolicies": true, "mutatingadmissionpolicybindings": true,
	"mutatingwebhookconfigurations": true, "networkpolicies": true, "poddisruptionbudgets": true, "pods": true,
	"podtemplates": true, "priorityclasses": true, "prioritylevelconfigurations": true, "replicasets": true,
	"replicationcontrollers": true, "resourceslices": true, "statefulsets": true,
	"validatingadmissionpolicies": true, "validatingadmissionpolicybindings": true,
	"validatingwebhookconfigurations": true,
}

// statusAtCreation are the resources that have a status from their creator.
var statusAtCreation = map[string]bool{"nodes": true}

// emptyStatus are the resources whose status has no field, as long as all feature gates have their defaults.
var emptyStatus = map[string]bool{"csinodes": true}

// statuses has a status for each resource that has one, and the path and value of a field in it.
var statuses = map[string]struct{ status, path, value string }{
	"apiservices":                 {`{"conditions":[{"type":"x","status":"True"}]}`, "conditions.0.type", "x"},
	"certificatesigningrequests":  {`{"conditions":[{"type":"Failed","status":"True"}]}`, "conditions.0.type", "Failed"},
	"cronjobs":                    {`{"lastScheduleTime":"2020-01-01T00:00:00Z"}`, "lastScheduleTime", "2020-01-01T00:00:00Z"},
	"daemonsets":                  {`{"numberReady":3}`, "numberReady", "3"},
	"deployments":                 {`{"replicas":3}`, "replicas", "3"},
	"devicetaintrules":            {`{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`, "conditions.0.type", "x"},
	"flowschemas":                 {`{"conditions":[{"type":"Dangling","status":"True"}]}`, "conditions.0.status", "True"},
	"horizontalpodautoscalers":    {`{"currentReplicas":3,"desiredReplicas":3}`, "currentReplicas", "3"},
	"ingresses":                   {`{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`, "loadBalancer.ingress.0.ip", "1.2.3.4"},
	"jobs":                        {`{"active":3}`, "active", "3"},
	"nodes":                       {`{"capacity":{"x.io/cpu":"3"}}`, "capacity", `{"x.io/cpu":"3"}`},
	"persistentvolumeclaims":      {`{"phase":"Lost"}`, "phase", "Lost"},
	"persistentvolumes":           {`{"phase":"Failed"}`, "phase", "Failed"},
	"podcertificaterequests":      {`{"conditions":[{"type":"Failed","status":"True","reason":"x","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`, "conditions.0.type", "Failed"},
	"poddisruptionbudgets":        {`{"currentHealthy":3,"desiredHealthy":1,"expectedPods":1,"disruptionsAllowed":1}`, "currentHealthy", "3"},
	"pods":                        {`{"phase":"Running"}`, "phase", "Running"},
	"prioritylevelconfigurations": {`{"conditions":[{"type":"x","status":"True"}]}`, "conditions.0.type", "x"},
	"replicasets":                 {`{"replicas":3}`, "replicas", "3"},
	"replicationcontrollers":      {`{"replicas":3}`, "replicas", "3"},
	"resourceclaims":              {`{"allocation":{"devices":{}},"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}`, "reservedFor.0.name", "p"},
	"resourcequotas":              {`{"hard":{"pods":"5"}}`, "hard.pods", "5"},
	"servicecidrs":                {`{"conditions":[{"type":"Ready","status":"True","reason":"x","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`, "conditions.0.type", "Ready"},
	"services":                    {`{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`, "conditions.0.type", "x"},
	"statefulsets":                {`{"replicas":3}`, "replicas", "3"},
	"storageversionmigrations":    {`{"resourceVersion":"5"}`, "resourceVersion", "5"},
	"validatingadmissionpolicies": {`{"observedGeneration":3}`, "observedGeneration", "3"},
	"volumeattachments":           {`{"attached":true}`, "attached", "true"},
}

// TestConventionsOfKinds goes through all kinds. It checks whether an update creates an absent
// object and whether it needs a resourceVersion, which fields only the server sets, and that spec
// and status are written separately.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
func TestConventionsOfKinds(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("first", "1")).want(201) // no other object has resourceVersion 1
		h.offerAddresses()
		for _, k := range smallest(t) {
			t.Run(strings.TrimPrefix(k.path, "/"), func(t *testing.T) {
				h := *h
				h.t = t
				parts := strings.Split(k.path, "/")
				c := &conventions{harness: &h, path: k.path, resource: parts[len(parts)-1], name: k.name, body: k.body}
				if parts[1] == "apis" {
					c.group = "." + parts[2]
				}
				c.updateOfNothing()
				c.create()
				c.update()
				c.status()
				h.do("DELETE", c.item()+"?propagationPolicy=Background", "").want(200)
			})
		}
	})
}

// conventions is one kind in TestConventionsOfKinds.
type conventions struct {
	*harness
	path, resource, group, name, body string
}

func (c *conventions) item() string { return c.path + "/" + c.name }

// with puts metadata and, if there is one, a status into the smallest object.
func (c *conventions) with(metadata map[string]any, status string) string {
	return edit(c.t, c.body, func(obj map[string]any) {
		obj["metadata"] = metadata
		if status != "" {
			obj["status"] = json.RawMessage(status)
		}
	})
}

func edit(t testing.TB, body string, change func(obj map[string]any)) string {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(body), &obj); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	change(obj)
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// refuse checks an error whose message begins with the resource and the name.
func (c *conventions) refuse(a answer, code int, reason, before, after string) {
	c.t.Helper()
	message := fmt.Sprintf("%s%s%s %q%s", before, c.resource, c.group, c.name, after)
	if a.code != code || a.get("reason") != reason || a.get("message") != message {
		c.t.Errorf("got %d %s: %s\nwant %d %s: %s", a.code, a.get("reason"), a.get("message"), code, reason, message)
	}
	if kind := a.get("details", "kind"); reason != "Invalid" && kind != c.resource || a.get("details", "name") != c.name {
		c.t.Errorf("details: %s", a.get("details"))
	}
}

// otherUID checks the refusal of an update with the uid of another object.
func (c *conventions) otherUID(a answer, have string) {
	c.t.Helper()
	c.refuse(a, 409, "Conflict", "Operation cannot be fulfilled on ", fmt.Sprintf(
		": StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: %s",
		c.upstreamKey(), have))
}

func (c *conventions) upstreamKey() string {
	parts := strings.Split(c.path, "/")
	group, version := "", parts[2]
	if c.group != "" {
		group, version = parts[2], parts[3]
	}
	namespace := ""
	if strings.Contains(c.path, "/namespaces/") {
		namespace = "default/"
	}
	return c.kinds.Lookup(group, version, c.resource).UpstreamPrefix() + namespace + c.name
}

func (c *conventions) updateOfNothing() {
	c.t.Helper()
	other := c.do("PUT", c.item(), c.with(map[string]any{"name": c.name, "uid": "other"}, ""))
	a := c.do("PUT", c.item(), c.with(map[string]any{"name": c.name}, ""))
	if !createdByUpdate[c.resource] {
		c.refuse(other, 404, "NotFound", "", " not found")
		c.refuse(a, 404, "NotFound", "", " not found")
		return
	}
	c.otherUID(other, "")
	a.want(201)
	c.do("DELETE", c.item()+"?propagationPolicy=Background", "").want(200)
}

// ofTheServer is metadata that only the server sets.
func ofTheServer(name string) map[string]any {
	return map[string]any{
		"name": name, "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77, "selfLink": "/mine",
		"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5,
	}
}

func (c *conventions) create() {
	c.t.Helper()
	status := statuses[c.resource]
	a := c.do("POST", c.path, c.with(ofTheServer(c.name), status.status)).want(201)
	for field, bad := range map[string]string{"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"} {
		if got := a.get("metadata", field); got == bad {
			c.t.Errorf("%s is %s", field, got)
		}
	}
	if got := a.get("metadata", "generation"); got != map[bool]string{true: "1", false: "77"}[counted[c.resource]] {
		c.t.Errorf("generation is %s", got)
	}
	for _, field := range []string{"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		if got := a.get("metadata", field); got != "" {
			c.t.Errorf("%s is %s", field, got)
		}
	}
	if c.found(a) != statusAtCreation[c.resource] {
		c.t.Errorf("status of a new object: %s", a.body)
	}
	c.refuse(c.do("POST", c.path, c.with(map[string]any{"name": c.name}, "")), 409, "AlreadyExists", "", " already exists")
	c.refuseKind(c.do("POST", c.path, c.with(map[string]any{"name": c.name, "resourceVersion": "5"}, "")))
}

func (c *conventions) refuseKind(a answer) {
	c.t.Helper()
	if a.code != 500 || a.get("message") != "resourceVersion should not be set on objects to be created" {
		c.t.Errorf("create with a resourceVersion: %d %s", a.code, a.body)
	}
}

func (c *conventions) found(a answer) bool {
	status, ok := statuses[c.resource]
	return ok && a.get(append([]string{"status"}, strings.Split(status.path, ".")...)...) == status.value
}

func (c *conventions) update() {
	c.t.Helper()
	old := c.do("GET", c.item(), "").want(200)
	labelled := func(change func(m map[string]any)) string {
		return edit(c.t, old.body, func(obj map[string]any) {
			m := obj["metadata"].(map[string]any)
			m["labels"] = map[string]any{"l": "1"}
			if status := statuses[c.resource]; status.status != "" {
				obj["status"] = json.RawMessage(status.status)
			}
			change(m)
		})
	}
	stale := c.do("PUT", c.item(), labelled(func(m map[string]any) { m["resourceVersion"] = "1" }))
	c.refuse(stale, 409, "Conflict", "Operation cannot be fulfilled on ", ": the object has been modified; please apply your changes to the latest version and try again")
	c.otherUID(c.do("PUT", c.item(), labelled(func(m map[string]any) { m["uid"] = "other" })), old.get("metadata", "uid"))
	for _, version := range []string{"", "0"} {
		a := c.do("PUT", c.item(), labelled(func(m map[string]any) { m["resourceVersion"] = version }))
		if conditionally[c.resource] {
			c.refuse(a, 422, "Invalid", "", " is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update")
			continue
		}
		a.want(200)
	}
	a := c.do("PUT", c.item(), labelled(func(m map[string]any) {
		if !conditionally[c.resource] {
			delete(m, "resourceVersion")
		}
		m["creationTimestamp"], m["selfLink"], m["generation"] = "2001-01-01T00:00:00Z", "/mine", 77
	})).want(200)
	if a.get("metadata", "labels", "l") != "1" || c.found(a) != statusAtCreation[c.resource] {
		c.t.Errorf("update: %s", a.body)
	}
	for _, field := range []string{"uid", "creationTimestamp", "generation", "selfLink"} {
		if field == "generation" && c.resource == "endpointslices" {
			continue // counts labels too
		}
		if got := a.get("metadata", field); got != old.get("metadata", field) {
			c.t.Errorf("%s went from %s to %s", field, old.get("metadata", field), got)
		}
	}
}

func (c *conventions) status() {
	c.t.Helper()
	old := c.do("GET", c.item(), "").want(200)
	status, ok := statuses[c.resource]
	if !ok {
		a := c.do("PUT", c.item()+"/status", old.body)
		if emptyStatus[c.resource] {
			a.want(200)
			return
		}
		if a.code != 404 || a.get("details") != "{}" {
			c.t.Errorf("/status of what has none: %d %s", a.code, a.body)
		}
		return
	}
	body := edit(c.t, old.body, func(obj map[string]any) {
		delete(obj, "spec")
		obj["status"] = json.RawMessage(status.status)
	})
	a := c.do("PUT", c.item()+"/status", body).want(200)
	if !c.found(a) || a.get("spec") != old.get("spec") || a.get("metadata", "generation") != old.get("metadata", "generation") {
		c.t.Errorf("/status: %s\nbefore: %s", a.body, old.body)
	}
}
