package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/backups"
	"github.com/plinth-io/plinth/sqlstore/backup"
)

// fromServer asks a plinth, and looks whether all of what comes arrives as it was sent.
func (b *backupJob) fromServer(ctx context.Context, to io.Writer, bar *bar) (t backup.Taken, err error) {
	a, err := b.ask.newClient()
	if err != nil {
		return t, err
	}
	path := backups.Path
	if b.history {
		path += "?history=true"
	}
	answer, err := a.open(ctx, path)
	if err != nil {
		return t, a.unreachable(err, "--kubeconfig, --context or --dsn")
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		return t, a.unauthorized()
	}
	if answer.StatusCode != http.StatusOK {
		return t, refusedBackup(a.server, answer)
	}
	return receive(answer.Body, to, bar)
}

// open sends a request without waiting for all of the answer.
func (a *statusClient) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(a.server.String(), "/")+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(request)
	var detail *url.Error
	if errors.As(err, &detail) {
		err = detail.Err // url.Error repeats the address
	}
	return answer, err
}

// refusedBackup is the error for an answer that is no backup.
func refusedBackup(server *url.URL, answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	var status metav1.Status
	_ = json.Unmarshal(text, &status)
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s makes no backups: it is no plinth, or one of an older version; read its database with --dsn", server)
	case status.Message != "":
		return fmt.Errorf("%s makes no backup: %s", server, status.Message)
	}
	return fmt.Errorf("%s makes no backup: it answers %s", server, answer.Status)
}

// receive copies a backup and reads it on the way.
func receive(from io.Reader, to io.Writer, bar *bar) (t backup.Taken, err error) {
	r, err := backup.NewReader(io.TeeReader(from, to))
	if err != nil {
		return t, received(err)
	}
	defer r.Close()
	for err == nil {
		_, err = r.Next()
		bar.tell(r.Summary().Rows+r.Summary().Old, r.Header.About)
	}
	if !errors.Is(err, io.EOF) {
		return t, received(err)
	}
	return backup.Taken{Header: r.Header, Summary: r.Summary(), Size: r.Read()}, nil
}

// received says what happened to a backup that did not arrive.
func received(err error) error {
	if errors.Is(err, backup.ErrCut) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("plinth has broken the backup off: %w; its log says why", err)
	}
	return fmt.Errorf("receive the backup: %w", err)
}
