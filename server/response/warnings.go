package response

import (
	"net/http"
	"slices"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Bounds on the text of all warnings of one response, and on one warning once they are
// exceeded (upstream: endpoints/filters/warning.go).
const (
	warningsTotalRunes = 4096
	warningItemRunes   = 256
)

// Warnings writes Warning headers: each text once, and shortened when all of them grow long. It
// may be used by several goroutines, as the objects of a collection are deleted concurrently.
type Warnings struct {
	mu         sync.Mutex
	header     http.Header // until the answer begins
	texts      []string
	asked      []string // the texts that admission gave
	seen       map[string]bool
	written    int
	truncating bool
}

// NewWarnings returns a recorder that writes to the header of an answer.
func NewWarnings(header http.Header) *Warnings { return &Warnings{header: header} }

// AddWarning implements k8s.io/apiserver/pkg/warning.Recorder.
func (s *Warnings) AddWarning(_, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" || s.seen[text] || (s.truncating && s.written >= warningsTotalRunes) {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[text] = true
	s.texts = append(s.texts, text)
	if !s.truncating && s.written+utf8.RuneCountInString(text) > warningsTotalRunes {
		s.truncating, s.written = true, 0
		s.header.Del("Warning")
		for _, t := range s.texts {
			s.write(t)
		}
		return
	}
	s.write(text)
}

// AskAdmission is called before admission is asked, and done when it has answered.
func (s *Warnings) AskAdmission() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(s.texts)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, s.texts[from:]...)
	}
}

// BesidesAdmission returns the warnings that admission did not give.
func (s *Warnings) BesidesAdmission() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		return s.texts
	}
	return slices.DeleteFunc(slices.Clone(s.texts), func(text string) bool { return slices.Contains(s.asked, text) })
}

// write adds a header; s.mu is held.
func (s *Warnings) write(text string) {
	if s.truncating && utf8.RuneCountInString(text) > warningItemRunes {
		text = string([]rune(text)[:warningItemRunes])
	}
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		s.written += utf8.RuneCountInString(text)
		s.header.Add("Warning", header)
	}
}
