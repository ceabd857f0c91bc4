package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
)

// joinProgram is what the variables of a joinScript are put in front of.
//
//go:embed join.sh
var joinProgram string

// joinScript is what a machine is told to become a node.
type joinScript struct {
	node, server, token string
	ca                  string // in PEM
	dns, domain         string
	minor               string // of the control plane's release, such as 37
}

// text is the script, which root runs on the machine.
func (s *joinScript) text() string {
	var b strings.Builder
	for _, v := range [][2]string{
		{"node", s.node}, {"server", s.server}, {"token", s.token}, {"ca", strings.TrimSpace(s.ca)},
		{"dns", s.dns}, {"domain", s.domain}, {"minor", s.minor},
	} {
		fmt.Fprintf(&b, "%s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	return b.String() + joinProgram
}

// line is the script in one line for a shell. A process list shows nothing of it: echo is no process of its own.
func (s *joinScript) line() string {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one that there is
	_, _ = w.Write([]byte(s.text()))                           // a buffer takes everything
	_ = w.Close()
	return fmt.Sprintf("echo %s | base64 -d | gunzip | sudo sh\n", base64.StdEncoding.EncodeToString(packed.Bytes()))
}
