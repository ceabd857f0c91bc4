// Package manifests has what plugins share that take policies or webhooks from files, too: staticManifestsDir in
// their configuration (KEP-5793).
//
// Upstream's packages read the files, and follow them (k8s.io/apiserver/pkg/admission/plugin/policy/manifest and
// webhook/manifest). This package owns whether the files could be used when they were read last, which /readyz tells.
package manifests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Manifests are the files of one plugin.
type Manifests struct {
	Dir      string
	Identity string          // of the server, in metrics
	Stop     <-chan struct{} // ends following the files

	mu         sync.Mutex
	known      bool   // they have been read
	hash       string // of what was read last
	unread     error
	uncompiled error // of what was read last
}

// Follow runs what follows the files until Stop.
func (m *Manifests) Follow(run func(context.Context)) {
	go run(wait.ContextForChannel(m.Stop))
}

// Load has load read the files, and notes what came of it. What is read again unchanged is not compiled again.
//
// Upstream takes an empty file for one without manifests. A file that is written in place is empty for a moment, in which
// policies would be out of force; so what was read before stays.
func (m *Manifests) Load(load func() (hash string, err error)) error {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	hash, err := "", error(nil)
	if known {
		err = m.whole()
	}
	if err == nil {
		hash, err = load()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread = err; err != nil {
		return err
	}
	if hash != m.hash {
		m.uncompiled = nil
	}
	m.known, m.hash = true, hash
	return nil
}

// extensions are those of the files that upstream reads.
var extensions = []string{".yaml", ".yml", ".json"}

// whole is an error if a file is empty.
func (m *Manifests) whole() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("failed to read manifest directory %q: %w", m.Dir, err)
	}
	for _, e := range entries {
		if e.IsDir() || !slices.Contains(extensions, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		path := filepath.Join(m.Dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.Size() == 0 {
			return fmt.Errorf("%s is empty: remove it, or write what it is to have", path)
		}
	}
	return nil
}

// Compiled notes that a policy was compiled.
func (m *Manifests) Compiled(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.uncompiled = err
	}
}

// Refused tells whether the files have changed and cannot be used.
func (m *Manifests) Refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unread != nil || m.uncompiled != nil
}
