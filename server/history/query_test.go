package history_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/selectors"
)

// TestManyTerms sends selectors with as many terms as there may be, and with one more, to each verb.
func TestManyTerms(t *testing.T) {
	p := open(t)
	p.fill()
	var users []string
	for i := range selectors.MostTerms {
		users = append(users, fmt.Sprintf("user!=u%d", i))
	}
	p.want(inShop+selecting(append(users[1:], "object.resource=configmaps")...), "deleted configmaps/b", "changed configmaps/a", "created configmaps/b", "created configmaps/a")
	p.want(inShop+selecting(append(users[2:], "object.resource=configmaps", "user!=jane")...), "deleted configmaps/b")
	for _, path := range []string{inShop, "changes?watch=1&fieldSelector=", "namespaces/shop/versions?fieldSelector=", "versions?watch=1&fieldSelector="} {
		if err := p.get(path+selecting(append(users, "action=changed")...), nil); !apierrors.IsBadRequest(err) || err.Error() != "fieldSelector has 1001 terms; at most 1000 are possible: select fewer, and make several requests" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSeveralTerms selects what meets all terms, also if they name one field.
func TestSeveralTerms(t *testing.T) {
	p := open(t)
	versions := p.fill()
	for _, none := range []string{
		"object.resource=configmaps,object.resource=secrets", "object.resource=secrets,object.resource=configmaps",
		"object.name=a,object.name!=a", "metadata.name=" + versions[0] + ",metadata.name=" + versions[1],
	} {
		p.want(inShop + selecting(none))
	}
	some := []string{"changed configmaps/a", "created configmaps/b"}
	p.want(inShop+selecting("object.resource=configmaps", "since="+versions[0], "since="+versions[1], "until="+versions[2]), some...)
	p.want(inShop+selecting("object.resource=configmaps", "since="+versions[1], "since=2001-01-01T00:00:00Z", "since="+versions[0], "until="+versions[2]), some...)
	p.want(inShop + selecting("object.resource=configmaps", "until="+versions[2], "until=2001-01-01T00:00:00Z"))
	if err := p.get("versions?fieldSelector="+selecting("at="+versions[0], "at="+versions[1]), nil); !apierrors.IsBadRequest(err) {
		t.Errorf("two states: %v", err)
	}
	err := p.client.CoreV1().RESTClient().Delete().AbsPath("/apis/history.plinth.io/v1/namespaces/shop/versions").
		Param("fieldSelector", strings.Repeat("object.name=a,", selectors.MostTerms)+"object.resource=configmaps").Do(t.Context()).Error()
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "1001 terms") {
		t.Errorf("deletecollection: %v", err)
	}
	must[*corev1.ConfigMap](t)(p.client.CoreV1().ConfigMaps("shop").Get(t.Context(), "a", metav1.GetOptions{}))
}
