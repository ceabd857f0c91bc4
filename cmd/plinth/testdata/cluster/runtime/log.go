package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// logFile is the log of a container as kubelets read it: each line with its time, its stream,
// and whether it is full or partial.
type logFile struct {
	mu   sync.Mutex
	file *os.File
}

func openLog(name string) (*logFile, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	return &logFile{file: f}, nil
}

func (l *logFile) Close() error { return l.file.Close() }

func (l *logFile) stream(name string) io.Writer { return &logStream{log: l, name: name} }

type logStream struct {
	log  *logFile
	name string
}

func (s *logStream) Write(p []byte) (int, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for line := range bytes.Lines(p) {
		tag := "F"
		if !bytes.HasSuffix(line, []byte("\n")) {
			tag, line = "P", append(bytes.Clone(line), '\n')
		}
		if _, err := fmt.Fprintf(s.log.file, "%s %s %s %s", time.Now().Format(time.RFC3339Nano), s.name, tag, line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
