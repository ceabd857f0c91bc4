package sqlstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestRefusals(t *testing.T) {
	s := newStore(t, Options{MaxValueBytes: 2000})
	for _, key := range []string{
		"a",
		"/registry/core/pods",
		pods + "a\x00b",
		pods + "a\nb",
		pods + "a\xff",
		pods + strings.Repeat("日", 3000),
		pods + strings.Repeat("a", changelog.MaxKeyBytes-len(pods)+1),
	} {
		if _, err := s.Commit(context.Background(), Change{Key: key, Value: value(key, 0)}); !errors.Is(err, changelog.ErrKey) {
			t.Errorf("key of %d bytes: %v, want ErrKey", len(key), err)
		}
	}
	create(t, s, pods+strings.Repeat("a", changelog.MaxKeyBytes-len(pods)))
	create(t, s, pods+"\uFFFD")
	if _, err := s.Commit(context.Background(), Change{Key: pods + "a", Delete: true}); err == nil {
		t.Error("a delete that expects nothing was accepted")
	}
	_, err := s.Commit(context.Background(), Change{Key: pods + "a", Value: make([]byte, 2001)})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}
