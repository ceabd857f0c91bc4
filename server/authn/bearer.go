package authn

import (
	"errors"
	"net/http"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
)

// carried finds the token of a request. Both places are upstream's: a header, and, for
// browsers, which cannot set that header, a protocol of a WebSocket.
type carried struct{ either authenticator.Request }

func newCarried(tokens authenticator.Token) carried {
	return carried{union.New(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))}
}

var errInvalidToken = errors.New("invalid bearer token")

// AuthenticateRequest implements authenticator.Request. TokenReviews show its errors.
func (c carried) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := c.either.AuthenticateRequest(r)
	if err != nil {
		// Upstream has one more authenticator, for its own loopback token, whose error comes first.
		err = utilerrors.NewAggregate([]error{errInvalidToken, err})
	}
	return response, ok, err
}

// mayHaveToken tells cheaply whether a request may carry a token.
func mayHaveToken(r *http.Request) bool {
	return r.Header["Authorization"] != nil || r.Header["Sec-Websocket-Protocol"] != nil
}

// forUs returns r with the audiences for one of which a token must be, unless a TokenReview has
// asked for others.
func forUs(r *http.Request, audiences authenticator.Audiences) *http.Request {
	if _, asked := authenticator.AudiencesFrom(r.Context()); asked || len(audiences) == 0 {
		return r
	}
	return r.WithContext(authenticator.WithAudiences(r.Context(), audiences))
}
