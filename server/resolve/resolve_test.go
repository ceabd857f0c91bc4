package resolve_test

import (
	"testing"

	"github.com/plinth-io/plinth/server/resolve"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

func TestResolveEndpoint(t *testing.T) {
	const ports = `"ports":[{"name":"api","port":443},{"name":"other","port":8443}]`
	service := func(name, spec string) [2]string {
		return [2]string{"/registry/core/services/ns/" + name, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"ns"},"spec":{` + spec + `}}`}
	}
	slice := func(name, of, rest string) [2]string {
		return [2]string{"/registry/discovery.k8s.io/endpointslices/ns/" + name,
			`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"` + name + `","namespace":"ns","labels":{"kubernetes.io/service-name":"` + of + `"}},` + rest + `}`}
	}
	endpoints := func(name, subsets string) [2]string {
		return [2]string{"/registry/core/endpoints/ns/" + name, `{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"ns"},"subsets":[` + subsets + `]}`}
	}
	tests := []struct {
		name, service string
		port          int32
		want, err     string
	}{
		{"external name", "outside", 444, "https://hooks.example.com:444", ""},
		{"no Service", "none", 443, "", `service "none" not found`},
		{"no such port", "ip", 1, "", `no service port 1 found for service "ip"`},
		{"cluster IP", "ip", 8443, "https://10.0.0.7:8443", ""},
		{"cluster IP of IPv6", "ip6", 443, "https://[fd00::7]:443", ""},
		{"neither endpoints nor IP", "bare", 443, "https://bare.ns.svc:443", ""},
		{"headless without endpoints", "headless", 443, "https://headless.ns.svc:443", ""},
		{"slice before IP", "sliced", 443, "https://127.0.0.1:9443", ""},
		{"slice of a port without a name", "unnamed", 443, "https://127.0.0.1:9443", ""},
		{"slice with no ready endpoint", "sliced", 8443, "https://10.0.0.8:8443", ""},
		{"endpoints", "old", 443, "https://127.0.0.2:9443", ""},
		{"endpoints that are not ready", "old", 8443, "https://10.0.0.9:8443", ""},
	}
	store := openStore(t, [][2]string{
		service("outside", `"type":"ExternalName","externalName":"hooks.example.com"`),
		service("ip", `"type":"ClusterIP","clusterIP":"10.0.0.7",`+ports),
		service("ip6", `"type":"ClusterIP","clusterIP":"fd00::7",`+ports),
		service("bare", `"type":"ClusterIP",`+ports),
		service("headless", `"type":"ClusterIP","clusterIP":"None",`+ports),
		service("sliced", `"type":"ClusterIP","clusterIP":"10.0.0.8",`+ports),
		slice("sliced-1", "sliced", `"ports":[{"name":"api","port":9443}],"endpoints":[
			{"addresses":["127.0.0.3"],"conditions":{"ready":false}},{"addresses":["127.0.0.1"]}]`),
		slice("sliced-2", "sliced", `"ports":[{"name":"other","port":9444}],"endpoints":[{"addresses":["127.0.0.3"],"conditions":{"ready":false}}]`),
		service("unnamed", `"type":"ClusterIP","ports":[{"port":443}]`),
		slice("unnamed-1", "unnamed", `"ports":[{"name":"","port":9443}],"endpoints":[{"addresses":["127.0.0.1"],"conditions":{"ready":true}}]`),
		service("old", `"type":"ClusterIP","clusterIP":"10.0.0.9",`+ports),
		endpoints("old", `{"addresses":[{"ip":"127.0.0.2"}],"ports":[{"name":"api","port":9443}]},
			{"notReadyAddresses":[{"ip":"127.0.0.3"}],"ports":[{"name":"other","port":9444}]}`),
	})
	r := resolve.New(store, "https://127.0.0.1:6443")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := r.ResolveEndpoint("ns", tt.service, tt.port)
			if err != nil || tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
			} else if u.String() != tt.want {
				t.Errorf("got %s, want %s", u, tt.want)
			}
		})
	}
	if u, err := r.ResolveEndpoint("default", "kubernetes", 443); err != nil || u.String() != "https://127.0.0.1:6443" {
		t.Errorf("the API itself: got %v, %v", u, err)
	}
}

func openStore(t *testing.T, objects [][2]string) *sqlstore.Store {
	t.Helper()
	store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
	for _, o := range objects {
		if _, err := store.Commit(t.Context(), sqlstore.Change{Key: o[0], Value: []byte(o[1])}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}
