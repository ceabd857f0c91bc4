// Package manifests has what plugins share that take policies or webhooks from files, too: staticManifestsDir in
// their configuration (KEP-5793).
//
// Upstream's packages read the files, and follow them (k8s.io/apiserver/pkg/admission/plugin/policy/manifest and
// webhook/manifest). This package owns whether the files could be used when they were read last, which /readyz tells.
package manifests

import (
	"context"
	"fmt"
	"maps"
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
// policies would be out of force; so what was read before stays. Files that have changed while they were read are read again.
func (m *Manifests) Load(load func() (hash string, err error)) error {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	hash, err := m.stable(!known, load)
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

// readings is how often files are read that change meanwhile.
const readings = 10

// stable has load read the files until they are afterwards as they were before.
func (m *Manifests) stable(mayBeEmpty bool, load func() (hash string, err error)) (string, error) {
	before, err := m.look(mayBeEmpty)
	if err != nil {
		return "", err
	}
	for range readings {
		hash, failed := load()
		after, err := m.look(mayBeEmpty)
		if err != nil {
			return "", err
		}
		if maps.EqualFunc(before, after, unwritten) {
			return hash, failed
		}
		before = after
	}
	return "", fmt.Errorf("the files in %s change all the time: replace them by renaming", m.Dir)
}

// extensions are those of the files that upstream reads.
var extensions = []string{".yaml", ".yml", ".json"}

// look returns the files as they are. Unless they may be empty, it is an error if one is.
func (m *Manifests) look(mayBeEmpty bool) (map[string]os.FileInfo, error) {
	entries, err := os.ReadDir(m.Dir)
	switch {
	case err != nil && mayBeEmpty:
		return nil, nil // load says so
	case err != nil:
		return nil, fmt.Errorf("failed to read manifest directory %q: %w", m.Dir, err)
	}
	files := make(map[string]os.FileInfo, len(entries))
	for _, e := range entries {
		if e.IsDir() || !slices.Contains(extensions, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		path := filepath.Join(m.Dir, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			continue // load says why it cannot be read
		}
		if info.Size() == 0 && !mayBeEmpty {
			return nil, fmt.Errorf("%s is empty: remove it, or write what it is to have", path)
		}
		files[path] = info
	}
	return files, nil
}

// unwritten tells whether a file was neither written nor replaced since it was looked at.
func unwritten(before, after os.FileInfo) bool {
	return before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) && os.SameFile(before, after)
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
