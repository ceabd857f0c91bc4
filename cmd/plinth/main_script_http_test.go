package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// shownHeaders are those of a response that the command http prints.
var shownHeaders = []string{"Allow", "Content-Encoding", "Content-Type", "Location", "Retry-After", "Vary", "Warning", "Www-Authenticate"}

func runHTTP(ts *testscript.TestScript, neg bool, args []string) {
	out, err := doHTTP(ts, args)
	if neg != (err != nil) {
		ts.Fatalf("http %s: %v", strings.Join(args, " "), err)
	}
	_, err = io.WriteString(ts.Stdout(), out)
	ts.Check(err)
}

// doHTTP sends one request, as the admin or with
//
//	-anonymous   no certificate
//	-stranger    a certificate of another authority
//	-H HEADER    one more header, "Name: value"
func doHTTP(ts *testscript.TestScript, args []string) (string, error) {
	who, header := "", http.Header{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-H" && len(args) > 1 {
			name, value, _ := strings.Cut(args[1], ": ")
			header.Add(name, value)
			args = args[1:]
		} else {
			who = args[0]
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return "", fmt.Errorf("usage: http [OPTION]... METHOD PATH [FILE]")
	}
	client, err := clientFor(ts.Getenv("KUBECONFIG"), who)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	var body []byte
	if len(args) > 2 {
		if body, err = os.ReadFile(ts.MkAbs(args[2])); err != nil {
			return "", err
		}
	}
	return exchange(client, args[0], ts.Getenv("URL")+args[1], header, body)
}

func clientFor(kubeconfig, who string) (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if who == "" {
		return clientrest.HTTPClientFor(config)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	tlsConfig := &tls.Config{RootCAs: roots}
	switch who {
	case "-anonymous":
	case "-stranger":
		cert, err := strangersCertificate()
		if err != nil {
			return nil, err
		}
		// Sent whatever authorities the server names.
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	default:
		return nil, fmt.Errorf("unknown option %s", who)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}}, nil
}

// strangersCertificate returns an admin's certificate that no authority has signed.
func strangersCertificate() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "stranger", Organization: []string{"system:masters"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func exchange(client *http.Client, method, url string, header http.Header, body []byte) (string, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header = header
	if body != nil && header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	var out strings.Builder
	fmt.Fprintf(&out, "HTTP %d\n", resp.StatusCode)
	for _, name := range slices.Sorted(slices.Values(shownHeaders)) {
		for _, value := range resp.Header.Values(name) {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", got)
	return out.String(), err
}
