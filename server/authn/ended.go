package authn

import (
	"crypto/x509"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	authx509 "k8s.io/apiserver/pkg/authentication/request/x509"
)

// tellEndedEvery bounds how often the log tells of certificates that have ended. Clients try again for ever.
const tellEndedEvery = 10 * time.Second

// ended tells the log of clients whose certificates have ended.
type ended struct {
	told atomic.Int64 // when, in unix nanoseconds
	more atomic.Int64 // refused since
}

// tell logs whose certificate ended when, if that is why a request was refused. Only certificates of our
// authorities are told of: others may have any name.
func (a *Authenticator) tellEnded(r *http.Request, err error) {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired || invalid.Cert == nil || r.TLS == nil {
		return
	}
	now, last := a.now(), a.ended.told.Load()
	if now.UnixNano()-last < int64(tellEndedEvery) || !a.ended.told.CompareAndSwap(last, now.UnixNano()) {
		a.ended.more.Add(1)
		return
	}
	leaf := r.TLS.PeerCertificates[0]
	o := a.verifyOptions(r.TLS.PeerCertificates, a.trusted.Load().clients)
	o.CurrentTime, o.KeyUsages = invalid.Cert.NotAfter, authx509.DefaultVerifyOptions().KeyUsages
	if _, err := leaf.Verify(o); err != nil && invalid.Cert == leaf {
		a.ended.told.CompareAndSwap(now.UnixNano(), last) // a stranger's
		return
	}
	what, when := "a client's certificate has ended, and its requests are refused", "ended"
	at := invalid.Cert.NotAfter
	if now.Before(invalid.Cert.NotBefore) {
		what, when, at = "a client's certificate is not valid yet, and its requests are refused; is the clock right?", "begins", invalid.Cert.NotBefore
	}
	attrs := []any{"user", leaf.Subject.CommonName, when, at.UTC().Format(time.RFC3339), "client", r.RemoteAddr}
	if invalid.Cert != leaf {
		attrs = append(attrs, "authority", invalid.Cert.Subject.CommonName)
	}
	if more := a.ended.more.Swap(0); more > 0 {
		attrs = append(attrs, "others", more)
	}
	a.logger.Warn(what, attrs...)
}
