package cluster

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// The keys of the objects that Bootstrap creates.
var (
	priorityClassPrefix = object.Prefix(schedulingv1.GroupName, "priorityclasses")
	tokenTrackingKey    = object.Key(object.Prefix("", "configmaps"), metav1.NamespaceSystem, legacytokentracking.ConfigMapName)
	serviceKey          = object.Key(lister.ServicePrefix, metav1.NamespaceDefault, serviceName)
	endpointsKey        = object.Key(lister.EndpointsPrefix, metav1.NamespaceDefault, serviceName)
	sliceKey            = object.Key(lister.SlicePrefix, metav1.NamespaceDefault, serviceName)
	cidrKey             = object.Key(cidrPrefix, "", cidrName)
)

// sealed are the objects of Bootstrap that exist and cannot be decrypted.
type sealed struct {
	mu     sync.Mutex
	found  []string // keys found in the current round
	logged []string // keys in the last log record
}

// orUnreadable returns nil for the error that an object cannot be decrypted, and notes that object. keys are
// the objects that the error may be about.
func (c *Cluster) orUnreadable(err error, keys ...string) error {
	if err == nil {
		return nil
	}
	for _, key := range keys {
		if e := c.config.Store.Get(key); e != nil && e.Unreadable() != nil {
			c.sealed.note(key)
			err = nil
		}
	}
	return err
}

func (s *sealed) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.found, key) {
		s.found = append(s.found, key)
	}
}

// logFound ends a round: it logs the keys that were found, unless the last record has the same.
func (s *sealed) logFound(logger *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.found)
	if len(s.found) > 0 && !slices.Equal(s.found, s.logged) {
		logger.Error("objects that every cluster needs cannot be decrypted; bring their key back, or delete them as docs/encryption.md says",
			"keys", strings.Join(s.found, " "))
	}
	s.found, s.logged = nil, s.found
}
