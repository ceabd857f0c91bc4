package admission

import (
	"errors"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/util/webhook"
	clientrest "k8s.io/client-go/rest"
)

// maxAnswer bounds the answer of a webhook, in bytes: a patch of the largest object there
// can be, in base64, several times over.
const maxAnswer = 16 << 20

var errAnswerTooLong = errors.New("the answer of the webhook is longer than 16 MiB")

// withBounds bounds the length of the answers of webhooks that are called as calls says.
func withBounds(calls webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	bounded := func(c *clientrest.Config, err error) (*clientrest.Config, error) {
		if err != nil {
			return nil, err
		}
		c = clientrest.CopyConfig(c)
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} })
		return c, nil
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*clientrest.Config, error) { return bounded(calls.ClientConfigFor(hostPort)) },
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*clientrest.Config, error) {
			return bounded(calls.ClientConfigForService(name, namespace, port))
		},
	}
}

type boundedAnswers struct{ next http.RoundTripper }

func (t boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &boundedBody{response.Body, maxAnswer}
	}
	return response, err
}

// boundedBody fails when more than left bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errAnswerTooLong
	}
	return n, err
}
