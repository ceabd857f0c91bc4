package torture

import (
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// shrinkTime bounds the search for a smaller history.
const shrinkTime = 30 * time.Second

// save writes the whole history, a small one in which the first fault is still there, and a drawing of
// that, to files whose names begin with base.
func save(h *History, broken []Broken, base string) (files []string, err error) {
	if len(broken) == 0 {
		files = []string{base + ".json"}
		return files, h.Save(files[0])
	}
	small, fault := Shrink(h, broken[0], shrinkTime)
	files = []string{base + ".json", base + "-small.json", base + ".html"}
	return files, errors.Join(h.Save(files[0]), small.Save(files[1]), Draw(small, fault, files[2]))
}

// Draw writes an HTML page that says what is broken, and shows the calls on the object in question and
// what watches were told of it.
func Draw(h *History, b Broken, path string) error {
	c := &checker{h: h, o: newOrder(h.Log)}
	parts := c.parts()
	key := b.Key
	if parts[key] == nil { // the fault is about all objects
		for _, any := range slices.Sorted(maps.Keys(parts)) {
			key = any
			break
		}
	}
	_, info := porcupine.CheckOperationsVerbose(keyModel, parts[key], checkPatience)
	info.AddAnnotations(annotations(h, key))
	if err := porcupine.VisualizePath(keyModel, info, path); err != nil {
		return err
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("<p><b>Broken: %s.</b> %s</p><p>Below: %s</p>", html.EscapeString(b.Guarantee), html.EscapeString(b.Text), html.EscapeString(key))
	return os.WriteFile(path, []byte(strings.Replace(string(page), "<body>", "<body>"+text, 1)), 0o644)
}

// annotations are what the log and watches say of a key, and the faults.
func annotations(h *History, key string) (notes []porcupine.Annotation) {
	note := func(tag string, begin, end time.Duration, text string) {
		notes = append(notes, porcupine.Annotation{Tag: tag, Start: int64(begin), End: int64(max(end, begin+1)), Description: text, Details: text})
	}
	for _, w := range h.Watches {
		for _, s := range w.Streams {
			for _, e := range s.Events {
				if e.Key == key {
					note("watch "+w.Name, e.At, e.At, fmt.Sprintf("%s %s at %d", e.Type, e.Content, e.Revision))
				}
			}
		}
	}
	for _, r := range h.Log {
		if at := time.UnixMilli(r.At).Sub(h.Begun); r.Key == key {
			note("the log", at, at, fmt.Sprintf("%s at %d by %s, deleted: %v", r.Content, r.Revision, r.By, r.Deleted))
		}
	}
	for _, f := range h.Faults {
		note("faults", f.Begin, f.End, fmt.Sprintf("%s, replica %d", f.Name, f.Replica))
	}
	return notes
}
