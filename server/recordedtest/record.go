package recordedtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// record is the directory with the kube-apiserver and the etcd that record, or "" where recordings
// are only read. `make record` sets it.
var record = os.Getenv("PLINTH_TEST_RECORD")

const (
	// waits is how long a kube-apiserver may take until an exchange whose name begins with "wait" has the
	// status that it had: kinds of policies' parameters are looked for each thirty seconds.
	waits = 40 * time.Second
	// waitsForWords is how long it may take until the rest of that answer is as it was, too.
	waitsForWords = 5 * time.Second
	// settles is how long it has after a change, until what it knows of other objects is up to date.
	settles = 100 * time.Millisecond
)

// recordFile has the recording in file written anew when t has ended, with what was checked until then.
func recordFile(t testing.TB, file, text string, exchanges []*Exchange) {
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := os.WriteFile(file, []byte(recorded(text, exchanges)), 0o644); err != nil {
			t.Error(err)
		}
	})
}

// recorded is the text of a recording with the answers that its exchanges have now.
func recorded(text string, exchanges []*Exchange) string {
	blocks := strings.Split(strings.TrimSuffix(text, "\n"), "\n----\n")
	blocks[0] = ofRelease(blocks[0])
	for i, e := range exchanges {
		request, _, _ := strings.Cut(blocks[i+1], "\n=> ")
		blocks[i+1] = request + "\n=> " + e.answer()
	}
	return strings.Join(blocks, "\n----\n") + "\n"
}

var (
	release   string // of the kube-apiserver that answers, such as 1.37
	ofWhich   = regexp.MustCompile(`\bkube-apiserver \d+\.\d+`)
	aMoment   = regexp.MustCompile(placeholders["<time>"])
	anyUID    = regexp.MustCompile(placeholders["<uid>"])
	aToken    = regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`)
	justBegun = time.Now().Add(-time.Minute)
)

// ofRelease says in a text about a kube-apiserver which one it is now.
func ofRelease(text string) string {
	if release == "" {
		return text
	}
	return ofWhich.ReplaceAllString(text, "kube-apiserver "+release)
}

// answer is what a recording has below "=> ".
func (e *Exchange) answer() string {
	var b bytes.Buffer
	b.WriteString(strconv.Itoa(e.Code))
	for _, w := range e.Warnings {
		b.WriteString("\n! " + w)
	}
	for _, v := range e.Values {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			panic(fmt.Sprintf("%s: %v", e.Name, err)) // the values come from JSON
		}
		b.WriteString("\n" + strings.TrimSuffix(line.String(), "\n"))
	}
	return b.String()
}

// keepWarnings takes warnings for those of the recording.
func (e *Exchange) keepWarnings(got []string) {
	var warnings []string
	for i, w := range got {
		before := ""
		if i < len(e.Warnings) {
			before = e.Warnings[i]
		}
		warnings = append(warnings, placeheld(alikeText(before, w)))
	}
	e.Warnings = warnings
}

// keepValues takes values for those of the recording. Where that had a placeholder, it stays.
func (e *Exchange) keepValues(values []any) {
	kept := alike(e.Values, values, "", e.omitted).([]any)
	for i := range kept {
		kept[i] = withPlaceholders(kept[i])
	}
	e.Values = kept
}

// withPlaceholders is a value with placeholders for moments of today and for UIDs.
func withPlaceholders(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = withPlaceholders(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withPlaceholders(v[i])
		}
	case string:
		return placeheld(v)
	}
	return v
}

func placeheld(text string) string {
	text = aMoment.ReplaceAllStringFunc(text, func(moment string) string {
		if at, err := time.Parse(time.RFC3339Nano, moment); err != nil || at.Before(justBegun) || at.After(time.Now().Add(time.Minute)) {
			return moment // given, not taken from a clock
		}
		return "<time>"
	})
	text = aToken.ReplaceAllString(text, "kube-api-access-<name>")
	return anyUID.ReplaceAllString(text, "<uid>")
}

// again tells whether an exchange is to be asked again, because the kube-apiserver may not have seen yet what came before.
func (e *Exchange) again(a *Answer, begun time.Time) bool {
	if record == "" {
		return false
	}
	if !strings.HasPrefix(e.Name, "wait") {
		if e.Method != http.MethodGet && a.Code < 300 {
			time.Sleep(settles)
		}
		return false
	}
	if waited := time.Since(begun); waited > waits || waited > waitsForWords && a.Code == e.Code {
		return false
	}
	values, err := decode(bytes.NewReader(a.Body))
	if a.Code == e.Code && (err != nil || len(e.Values) == 0 || e.diff(values...) == "") && compare(texts(e.Warnings), texts(a.Header.Values("Warning")), nil) == "" {
		return false
	}
	time.Sleep(100 * time.Millisecond)
	return true
}
