package rest

import (
	"net/http"
	"slices"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/warning"
)

// Bounds on the text of all warnings of one response, and on one warning once they are
// exceeded (upstream: endpoints/filters/warning.go).
const (
	warningsTotalRunes = 4096
	warningItemRunes   = 256
)

// warnings writes Warning headers: each text once, shortened when they grow long. The
// objects of a collection are deleted at once and may all be warned of.
type warnings struct {
	mu         sync.Mutex
	header     http.Header // until the answer begins
	texts      []string
	asked      []string // those of texts that admission gave
	seen       map[string]bool
	written    int
	truncating bool
}

// NewWarnings returns a recorder that writes to w's header. It is for what is warned of
// before a request has come to this package.
func NewWarnings(w http.ResponseWriter) warning.Recorder { return newWarnings(w) }

func newWarnings(w http.ResponseWriter) *warnings {
	return &warnings{header: w.Header()}
}

// AddWarning implements k8s.io/apiserver/pkg/warning.Recorder.
func (s *warnings) AddWarning(_, text string) {
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

// asking is called before admission is asked, and done when it has answered.
func (s *warnings) asking() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(s.texts)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, s.texts[from:]...)
	}
}

// own are the warnings that admission did not give.
func (s *warnings) own() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == 0 {
		return s.texts
	}
	return slices.DeleteFunc(slices.Clone(s.texts), func(text string) bool { return slices.Contains(s.asked, text) })
}

// write adds a header; s.mu is held.
func (s *warnings) write(text string) {
	if s.truncating && utf8.RuneCountInString(text) > warningItemRunes {
		text = string([]rune(text)[:warningItemRunes])
	}
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		s.written += utf8.RuneCountInString(text)
		s.header.Add("Warning", header)
	}
}
