package recordedtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Read returns the exchanges of a file, in their order.
func Read(t testing.TB, file string) []*Exchange {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	exchanges, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if record != "" {
		recordFile(t, file, string(text), exchanges)
	}
	return exchanges
}

func parse(text string) ([]*Exchange, error) {
	blocks := strings.Split(strings.TrimSuffix(text, "\n"), "\n----\n")
	omitted, header, err := parsePreamble(blocks[0])
	if err != nil {
		return nil, err
	}
	var exchanges []*Exchange
	for _, block := range blocks[1:] {
		e, err := parseExchange(block, header)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", block, err)
		}
		e.omitted = omitted
		exchanges = append(exchanges, e)
	}
	return exchanges, nil
}

// parsePreamble reads the first block: the omitted fields and the headers of all requests.
func parsePreamble(block string) (map[string]bool, http.Header, error) {
	lines := strings.Split(block, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "# ") {
		lines = lines[1:]
	}
	header, err := parseHeader(lines)
	if err != nil {
		return nil, nil, fmt.Errorf("first block: %w", err)
	}
	omitted := map[string]bool{}
	for _, name := range strings.Fields(header.Get("Omitted")) {
		omitted[name] = true
	}
	header.Del("Omitted")
	return omitted, header, nil
}

func parseExchange(block string, common http.Header) (*Exchange, error) {
	request, answer, ok := strings.Cut(block, "\n=> ")
	if !ok {
		return nil, errors.New("no answer")
	}
	e := &Exchange{}
	if err := e.parseRequest(request, common); err != nil {
		return nil, err
	}
	return e, e.parseAnswer(answer)
}

func (e *Exchange) parseRequest(text string, common http.Header) error {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if len(lines) < 2 {
		return errors.New("no request line")
	}
	e.Name, e.Body = strings.TrimPrefix(lines[0], "# "), body
	e.Method, e.Path, _ = strings.Cut(lines[1], " ")
	own, err := parseHeader(lines[2:])
	if err != nil {
		return err
	}
	e.Header = common.Clone()
	for name, values := range own {
		e.Header[name] = values
	}
	return nil
}

func parseHeader(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("%q is no header", line)
		}
		header.Add(name, value)
	}
	return header, nil
}

func (e *Exchange) parseAnswer(text string) (err error) {
	code, rest, _ := strings.Cut(text, "\n")
	if e.Code, err = strconv.Atoi(code); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	for strings.HasPrefix(rest, "! ") {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		e.Warnings = append(e.Warnings, strings.TrimPrefix(line, "! "))
	}
	e.Values, err = decode(strings.NewReader(rest))
	return err
}

// decode reads JSON values until the end. Numbers stay as they are written: float64 does not hold all of int64.
func decode(r io.Reader) (values []any, err error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
}
