package rest_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/rest"
)

// These are parts that many of the objects below have.
const (
	template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	once     = `{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
)

// smallest has a minimal object of each kind, and the kind of the answer to its deletion: a Status
// for most, the object for some.
func smallest(t testing.TB) []struct{ path, name, answer, body string } {
	return []struct{ path, name, answer, body string }{
		{"/api/v1/namespaces/default/configmaps", "a", "Status", `{}`},
		{"/api/v1/namespaces/default/endpoints", "a", "Status", `{}`},
		{"/api/v1/namespaces/default/events", "a", "Status", `{"involvedObject":{"namespace":"default"}}`},
		{"/api/v1/namespaces/default/limitranges", "a", "Status", `{"spec":{"limits":[]}}`},
		{"/api/v1/namespaces/default/persistentvolumeclaims", "a", "PersistentVolumeClaim", `{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}}`},
		{"/api/v1/namespaces/default/pods", "a", "Pod", `{"spec":{"containers":[{"name":"c","image":"i"}]}}`},
		{"/api/v1/namespaces/default/podtemplates", "a", "PodTemplate", `{` + template + `}`},
		{"/api/v1/namespaces/default/replicationcontrollers", "a", "Status", `{"spec":{"selector":{"a":"b"},` + template + `}}`},
		{"/api/v1/namespaces/default/resourcequotas", "a", "ResourceQuota", `{}`},
		{"/api/v1/namespaces/default/secrets", "a", "Status", `{}`},
		{"/api/v1/namespaces/default/serviceaccounts", "a", "ServiceAccount", `{}`},
		{"/api/v1/namespaces/default/services", "a", "Service", `{"spec":{"ports":[{"port":80}]}}`},
		{"/apis/apps/v1/namespaces/default/controllerrevisions", "a", "Status", `{"revision":1,"data":{}}`},
		{"/apis/apps/v1/namespaces/default/daemonsets", "a", "Status", `{"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{"/apis/apps/v1/namespaces/default/deployments", "a", "Status", `{"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{"/apis/apps/v1/namespaces/default/replicasets", "a", "Status", `{"spec":{"selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{"/apis/apps/v1/namespaces/default/statefulsets", "a", "Status", `{"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},` + template + `}}`},
		{"/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "a", "Status", `{"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`},
		{"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", "a", "Status", `{"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`},
		{"/apis/batch/v1/namespaces/default/cronjobs", "a", "Status", `{"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":` + once + `}}}}`},
		{"/apis/batch/v1/namespaces/default/jobs", "a", "Status", `{"spec":{"template":` + once + `}}`},
		{"/apis/coordination.k8s.io/v1/namespaces/default/leases", "a", "Status", `{}`},
		{"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "a", "Status", `{"addressType":"IPv4","endpoints":[]}`},
		{"/apis/events.k8s.io/v1/namespaces/default/events", "a", "Status", `{"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"c.io/x","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}`},
		{"/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests", "a", "Status", `{"spec":{"signerName":"x.io/y","podName":"p","podUID":"u","serviceAccountName":"s","serviceAccountUID":"u","nodeName":"n","nodeUID":"u","stubPKCS10Request":"` + base64.StdEncoding.EncodeToString(signingRequest(t)) + `"}}`},
		{"/apis/networking.k8s.io/v1/namespaces/default/ingresses", "a", "Status", `{"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`},
		{"/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "a", "Status", `{"spec":{"podSelector":{}}}`},
		{"/apis/policy/v1/namespaces/default/poddisruptionbudgets", "a", "Status", `{}`},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "a", "Status", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}}`},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "a", "Status", `{}`},
		{"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", "a", "ResourceClaim", `{"spec":{}}`},
		{"/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", "a", "ResourceClaimTemplate", `{"spec":{"spec":{}}}`},
		{"/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities", "a", "Status", `{"storageClassName":"s"}`},
		{"/api/v1/nodes", "a", "Status", `{}`},
		{"/api/v1/persistentvolumes", "a", "PersistentVolume", `{"spec":{"capacity":{"storage":"1"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/data"}}}`},
		{"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies", "a", "Status", `{"spec":{"reinvocationPolicy":"Never","matchConstraints":{"resourceRules":[{"apiGroups":["x.io"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["x"]}]},"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op:\"test\",path:\"/a\",value:1}]"}}]}}`},
		{"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings", "a", "Status", `{"spec":{"policyName":"p"}}`},
		{"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "a", "Status", `{}`},
		{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "a", "Status", `{"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["x.io"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["x"]}]},"validations":[{"expression":"true"}]}}`},
		{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", "a", "Status", `{"spec":{"policyName":"p","validationActions":["Deny"]}}`},
		{"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "a", "Status", `{}`},
		{"/apis/apiregistration.k8s.io/v1/apiservices", "v1.example.com", "Status", `{"spec":{"group":"example.com","version":"v1","groupPriorityMinimum":1000,"versionPriority":10,"service":{"namespace":"default","name":"x"},"insecureSkipTLSVerify":true}}`},
		{"/apis/certificates.k8s.io/v1/certificatesigningrequests", "a", "Status", `{"spec":{"request":"` + certificateRequest(t) + `","signerName":"x.io/y","usages":["client auth"]}}`},
		{"/apis/certificates.k8s.io/v1/clustertrustbundles", "a", "Status", `{"spec":{"trustBundle":"` + authority(t) + `"}}`},
		{"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "a", "Status", `{"spec":{"priorityLevelConfiguration":{"name":"exempt"}}}`},
		{"/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", "a", "Status", `{"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}}`},
		{"/apis/networking.k8s.io/v1/ingressclasses", "a", "Status", `{"spec":{"controller":"x.io/c"}}`},
		{"/apis/networking.k8s.io/v1/ipaddresses", "10.1.2.3", "Status", `{"spec":{"parentRef":{"group":"","resource":"services","namespace":"default","name":"s"}}}`},
		{"/apis/networking.k8s.io/v1/servicecidrs", "a", "Status", `{"spec":{"cidrs":["10.77.0.0/24"]}}`},
		{"/apis/node.k8s.io/v1/runtimeclasses", "a", "Status", `{"handler":"h"}`},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "a", "Status", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}}`},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "a", "Status", `{}`},
		{"/apis/resource.k8s.io/v1/deviceclasses", "a", "DeviceClass", `{"spec":{}}`},
		{"/apis/resource.k8s.io/v1/devicetaintrules", "a", "Status", `{"spec":{"taint":{"key":"x.io/k","effect":"NoSchedule"}}}`},
		{"/apis/resource.k8s.io/v1/resourceslices", "a", "ResourceSlice", `{"spec":{"driver":"d.io","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1}}}`},
		{"/apis/scheduling.k8s.io/v1/priorityclasses", "a", "Status", `{"value":1}`},
		{"/apis/storage.k8s.io/v1/csidrivers", "a", "CSIDriver", `{}`},
		{"/apis/storage.k8s.io/v1/csinodes", "a", "CSINode", `{"spec":{"drivers":[]}}`},
		{"/apis/storage.k8s.io/v1/storageclasses", "a", "StorageClass", `{"provisioner":"p.io/p"}`},
		{"/apis/storagemigration.k8s.io/v1/storageversionmigrations", "a", "Status", `{"spec":{"resource":{"group":"","resource":"configmaps"}}}`},
		{"/apis/storage.k8s.io/v1/volumeattributesclasses", "a", "VolumeAttributesClass", `{"driverName":"d.io","parameters":{"a":"b"}}`},
		{"/apis/storage.k8s.io/v1/volumeattachments", "a", "VolumeAttachment", `{"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"p"}}}`},
	}
}

// certificateRequest is a certificate signing request as in a CertificateSigningRequest: in base64, around PEM.
func certificateRequest(t testing.TB) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: signingRequest(t)}))
}

func signingRequest(t testing.TB) []byte {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// authority is the certificate of an authority, in PEM within a JSON string.
func authority(t testing.TB) string {
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "\n", `\n`)
}

func newKey(t testing.TB) ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// named puts a name, and finalizers if there are any, into a body.
func named(t testing.TB, body, name string, finalizers ...string) string {
	var obj map[string]any
	if err := json.Unmarshal([]byte(body), &obj); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	obj["metadata"] = map[string]any{"name": name, "finalizers": finalizers}
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDeletionAnswers deletes an object of each kind: as a dry run, for real, and held by a
// finalizer. Namespaces and CustomResourceDefinitions are deleted in ways of their own.
func TestDeletionAnswers(t *testing.T) {
	aloneAndShared(t, awayOnPostgres, rest.Options{}, func(t *testing.T, h *harness) {
		h.offerAddresses()
		missing := map[string]bool{}
		for _, k := range builtin.Kinds(builtin.Options{}) {
			if k.Can("delete") && k.Kind != "Namespace" && k.Kind != "CustomResourceDefinition" {
				missing[k.Group+"/"+k.Resource] = true
			}
		}
		for _, k := range smallest(t) {
			t.Run(strings.TrimPrefix(k.path, "/"), func(t *testing.T) {
				h := *h
				h.t = t
				h.deleteEach(k.path, k.name, k.answer, k.body)
			})
			parts := strings.Split(k.path, "/")
			group, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(k.path, "/apis/"), "/api/v1"), "/")
			delete(missing, group+"/"+parts[len(parts)-1])
		}
		for k := range missing {
			t.Errorf("%s is not tested", k)
		}
	})
}

func (h *harness) deleteEach(path, name, answer, body string) {
	h.t.Helper()
	item := path + "/" + name
	created := h.do("POST", path, named(h.t, body, name)).want(201)
	if dry := h.do("DELETE", item+"?propagationPolicy=Background&dryRun=All", "").want(200); dry.get("kind") != answer {
		h.t.Errorf("dry run: %s, want %s: %s", dry.get("kind"), answer, dry.body)
	}
	if got := h.do("GET", item, "").want(200); got.body != created.body {
		h.t.Errorf("after a dry run:\n%s\nbefore:\n%s", got.body, created.body)
	}
	if gone := h.do("DELETE", item+"?propagationPolicy=Background", "").want(200); gone.get("kind") != answer {
		h.t.Errorf("deleted: %s, want %s: %s", gone.get("kind"), answer, gone.body)
	}
	h.do("GET", item, "").want(404)

	h.do("POST", path, named(h.t, body, name, "x.io/a")).want(201)
	held := h.do("DELETE", item+"?propagationPolicy=Background", "").want(200)
	if held.get("kind") != created.get("kind") || held.get("metadata", "deletionTimestamp") == "" || held.get("metadata", "finalizers") != `["x.io/a"]` {
		h.t.Errorf("held: %s", held.body)
	}
	h.do("PATCH", item, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json").want(200)
	h.do("GET", item, "").want(404)
}
