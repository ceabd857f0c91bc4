package main

import (
	"encoding/json"
	"io"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

func checkOutput(output string) error {
	switch output {
	case "", "json", "yaml":
		return nil
	}
	return usagef("--output: %q: write json or yaml, or leave it out for text", output)
}

// printAs prints v as json or yaml.
func printAs(w io.Writer, output string, v any) error {
	if output == "yaml" {
		text, err := past.YAML(v)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, printableLines(string(text))+"\n") // which is the same JSON
	return err
}

// printLine prints v as JSON in one line.
func printLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = io.WriteString(w, printable(string(text))+"\n")
	}
	return err
}
