package auth

import (
	"errors"
	"net/http"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
)

// carried finds tokens where a request may carry one. Both ways are upstream's: a header,
// and for browsers, which cannot set that, a protocol of a WebSocket.
type carried struct{ either authenticator.Request }

func newCarried(tokens authenticator.Token) carried {
	return carried{union.New(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))}
}

var errInvalidToken = errors.New("invalid bearer token")

// AuthenticateRequest implements authenticator.Request. Reviews of tokens show its errors.
func (c carried) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := c.either.AuthenticateRequest(r)
	if err != nil {
		// Upstream has one more kind of token, its own, and tells that it is none of those.
		err = utilerrors.NewAggregate([]error{errInvalidToken, err})
	}
	return response, ok, err
}

// mayHaveToken saves other requests the look.
func mayHaveToken(r *http.Request) bool {
	return r.Header["Authorization"] != nil || r.Header["Sec-Websocket-Protocol"] != nil
}
