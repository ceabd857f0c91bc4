package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server/rest"
)

// The files in testdata/recorded are conversations with kube-apiserver 1.33, block by block
// a request and below "=>" its status, its warnings, and the essence of its answer: of an
// error the reason and the message, or its causes in the order of their text if there are
// several, because upstream's is random; of a table what is to be seen; of an object
// everything but what is new each time. What https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
// says of structural schemas, pruning, defaulting, validation rules, ratcheting,
// subresources, columns and selectable fields has a block each.
func TestRecorded(t *testing.T) {
	onEachDialect(t, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.serveDefinitions()
		for _, file := range []string{"baddefinitions.txt", "customobjects.txt"} {
			blocks, err := os.ReadFile("testdata/recorded/" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range strings.Split(string(blocks), "\n----\n") {
				if r := parseRecorded(t, text); r != nil {
					t.Run(r.name, func(t *testing.T) { r.play(t, h) })
				}
			}
		}
	})
}

// recorded is one block.
type recorded struct {
	name, method, path string
	headers            []string
	body               string
	code               int
	warnings, essence  string
}

func parseRecorded(t *testing.T, text string) *recorded {
	t.Helper()
	request, answer, ok := strings.Cut(text, "\n=> ")
	if !ok {
		return nil
	}
	r := &recorded{}
	head, body, _ := strings.Cut(request, "\n\n")
	r.body = body
	lines := strings.Split(head, "\n")
	r.name = strings.TrimPrefix(lines[0], "# ")
	r.method, r.path, _ = strings.Cut(lines[1], " ")
	for _, line := range lines[2:] {
		name, value, _ := strings.Cut(line, ": ")
		r.headers = append(r.headers, name, value)
	}
	status, essence, _ := strings.Cut(answer, "\n")
	code, warnings, _ := strings.Cut(status, " ")
	var err error
	if r.code, err = strconv.Atoi(code); err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	r.warnings, r.essence = warnings, essence
	return r
}

func (r *recorded) play(t *testing.T, shared *harness) {
	h := *shared
	h.t = t
	begun := h.kinds.Set().Generation
	headers := append([]string{"Content-Type", "application/json", "Accept", "application/json", "User-Agent", "wire/1.0"}, r.headers...)
	a := h.do(r.method, r.path, r.body, headers...)
	if a.code != r.code {
		t.Fatalf("got %d %s\nwant %d %s", a.code, a.body, r.code, r.essence)
	}
	if got := strings.Join(a.head.Values("Warning"), ", "); got != r.warnings {
		t.Errorf("got warnings %s\nwant %s", got, r.warnings)
	}
	var want any
	if err := json.Unmarshal([]byte(r.essence), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, essence(t, a)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if a.code < 300 && strings.Contains(r.path, "customresourcedefinitions") && !strings.Contains(r.path, "dryRun") {
		h.until("the definition is in effect", func() bool { return h.kinds.Set().Generation > begun })
		if name := a.get("metadata", "name"); r.method == "POST" {
			h.until("established", func() bool { return h.condition(name, "Established") == "True" })
		}
	}
}

// essence is what of an answer can be compared.
func essence(t *testing.T, a answer) any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		return map[string]any{"text": strings.TrimSpace(a.body)}
	}
	switch o["kind"] {
	case "Status":
		return statusEssence(t, a)
	case "Table":
		return tableEssence(t, a)
	}
	scrub(o)
	return o
}

func statusEssence(t *testing.T, a answer) any {
	var status struct {
		Reason, Message string
		Details         struct {
			Causes []struct{ Reason, Message, Field string }
		}
	}
	if err := json.Unmarshal([]byte(a.body), &status); err != nil {
		t.Fatal(err)
	}
	e := map[string]any{}
	if status.Reason != "" {
		e["reason"] = status.Reason
	}
	var causes []string
	for _, c := range status.Details.Causes {
		causes = append(causes, fmt.Sprintf("%s %s: %s", c.Reason, c.Field, c.Message))
	}
	if slices.Sort(causes); len(causes) > 1 {
		e["causes"] = anySlice(causes)
	} else if status.Message != "" {
		e["message"] = status.Message
	}
	return e
}

func anySlice(texts []string) (out []any) {
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}

func tableEssence(t *testing.T, a answer) any {
	var table struct {
		ColumnDefinitions []struct {
			Name, Type, Format string
			Priority           int
		}
		Rows []struct{ Cells []any }
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(a.body))).Decode(&table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s %s %s %d", c.Name, c.Type, c.Format, c.Priority))
	}
	cells := []any{}
	for _, row := range table.Rows {
		for i, c := range table.ColumnDefinitions {
			if c.Name == "Age" {
				row.Cells[i] = "AGE"
			}
		}
		cells = append(cells, row.Cells)
	}
	return map[string]any{"columns": anySlice(columns), "cells": cells}
}

// scrub takes out what is new each time.
func scrub(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields", "lastTransitionTime", "deletionTimestamp"} {
			delete(v, name)
		}
		for _, inner := range v {
			scrub(inner)
		}
	case []any:
		for _, inner := range v {
			scrub(inner)
		}
	}
}
