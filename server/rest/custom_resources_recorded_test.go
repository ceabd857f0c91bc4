package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/rest"
)

// TestCustomResourcesRecorded plays the conversations in testdata/recorded. They have the essence
// of each answer: the reason and the message of an error, or its causes, sorted because upstream's
// order is random; the columns and cells of a table; the whole of an object. There is a block for
// each of structural schemas, pruning, defaulting, validation rules, ratcheting, subresources,
// columns and selectable fields.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
func TestCustomResourcesRecorded(t *testing.T) {
	if u := recordedtest.StartUpstream(t, ""); u != nil {
		recordEssence(t, u)
		return
	}
	aloneAndShared(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.t = t
		h.serveDefinitions()
		for _, file := range essences {
			for _, e := range recordedtest.Read(t, "testdata/recorded/"+file) {
				t.Run(e.Name, func(t *testing.T) { playEssence(t, h, e) })
			}
		}
	})
}

var essences = []string{"baddefinitions.txt", "customobjects.txt"}

// recordEssence has a kube-apiserver answer. It serves a definition some time after it says so.
func recordEssence(t *testing.T, u *recordedtest.Upstream) {
	for _, file := range essences {
		for _, e := range recordedtest.Read(t, "testdata/recorded/"+file) {
			got := e.Ask(t, u.Admin, u.URL)
			e.Check(t, got, essence(t, answer{t, got.Code, got.Header, string(got.Body)}))
			if changesDefinition(e, got.Code) {
				time.Sleep(2 * time.Second)
			}
		}
	}
}

func changesDefinition(e *recordedtest.Exchange, code int) bool {
	return code < 300 && strings.Contains(e.Path, "customresourcedefinitions") && e.Method != "GET" && !strings.Contains(e.Path, "dryRun")
}

// playEssence plays an exchange. After a change of a definition it waits until the change is in
// effect.
func playEssence(t *testing.T, shared *harness, e *recordedtest.Exchange) {
	h := *shared
	h.t = t
	begun := h.kinds.Set().Generation
	got := e.Ask(t, http.DefaultClient, h.http.URL)
	a := answer{t, got.Code, got.Header, string(got.Body)}
	e.Check(t, got, essence(t, a))
	if changesDefinition(e, a.code) {
		h.until("the definition is in effect", func() bool { return h.kinds.Set().Generation > begun })
		if name := a.get("metadata", "name"); e.Method == "POST" {
			h.until("established", func() bool { return h.condition(name, "Established") == "True" })
		}
	}
}

// essence is the part of an answer that the recordings have.
func essence(t *testing.T, a answer) any {
	t.Helper()
	var o map[string]any
	d := json.NewDecoder(strings.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return map[string]any{"text": strings.TrimSpace(a.body)}
	}
	switch o["kind"] {
	case "Status":
		return statusEssence(t, a)
	case "Table":
		return tableEssence(t, a)
	}
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
		cells = append(cells, row.Cells)
	}
	return map[string]any{"columns": anySlice(columns), "cells": cells}
}
