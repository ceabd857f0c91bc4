package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// clusterDocument has the commands by which TestCluster sets up its cluster.
const clusterDocument = "docs/cluster.md"

// documented returns the only command of the document that begins with a text.
func (s *docShell) documented(t *testing.T, begin string) command {
	t.Helper()
	var found []command
	for _, b := range blocksOf(clusterDocument, readDocument(t, clusterDocument)) {
		if !b.shell() {
			continue
		}
		all, err := b.commands()
		must(t, err)
		for _, c := range all {
			if strings.HasPrefix(c.text, begin) {
				found = append(found, c)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d commands that begin with %q", clusterDocument, len(found), begin)
	}
	return found[0]
}

// translated is the text of a documented command as it is played.
func (s *docShell) translated(t *testing.T, begin string) string {
	t.Helper()
	text, err := s.translate(s.documented(t, begin).text)
	must(t, err)
	return text
}

// playDocumented plays a documented command.
func (s *docShell) playDocumented(t *testing.T, begin string) {
	t.Helper()
	s.play(clusterDocument+": "+begin, s.documented(t, begin))
}

// flagsOf returns the flags of a documented command.
func (s *docShell) flagsOf(t *testing.T, begin string) []string {
	t.Helper()
	return strings.Fields(strings.ReplaceAll(strings.TrimPrefix(s.translated(t, begin), begin), "\\\n", ""))
}

// path is where the shell has a path of the system.
func (s *docShell) path(name string) string { return filepath.Join(s.root, name) }
