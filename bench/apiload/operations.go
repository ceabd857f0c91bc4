package apiload

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Operation is one request of a load, which a worker makes again and again.
type Operation = func(ctx context.Context, worker int) error

// Get returns an operation that reads what is at path(worker).
func (c Clients) Get(path func(worker int) string) Operation {
	return func(ctx context.Context, worker int) error {
		_, err := c.Of(worker).Do(ctx, http.MethodGet, path(worker), nil, nil)
		return err
	}
}

// At is the path of all workers.
func At(path string) func(worker int) string { return func(int) string { return path } }

// Create returns an operation that creates what next returns, in the collection at path.
func (c Clients) Create(path string, next func(worker int) []byte) Operation {
	return func(ctx context.Context, worker int) error {
		_, err := c.Of(worker).Do(ctx, http.MethodPost, path, next(worker), nil)
		return err
	}
}

// ChangeOneField returns an operation by which each worker changes one field of a ConfigMap of its own, in the last
// answer of the server.
func (c Clients) ChangeOneField(workers int, path func(worker int) string) Operation {
	objects, turns := make([]bytes.Buffer, workers), make([]int, workers)
	return func(ctx context.Context, w int) error {
		if objects[w].Len() == 0 {
			if _, err := c.Of(w).Do(ctx, http.MethodGet, path(w), nil, &objects[w]); err != nil {
				return err
			}
		}
		turns[w]++
		body := bytes.Clone(objects[w].Bytes())
		SetField(body, "n", fmt.Sprintf("%012d", turns[w]))
		_, err := c.Of(w).Do(ctx, http.MethodPut, path(w), body, &objects[w])
		return err
	}
}

// ConfigMaps are counted by what each has once.
const ConfigMaps = `"sent":"`

// List returns an operation of one worker that lists, and counts the objects by a mark that each has once.
func (c Clients) List(path, mark string, objects int) Operation {
	var answer bytes.Buffer
	return func(ctx context.Context, _ int) error {
		if _, err := c[0].Do(ctx, http.MethodGet, path, nil, &answer); err != nil {
			return err
		}
		if got := bytes.Count(answer.Bytes(), []byte(mark)); got != objects {
			return fmt.Errorf("GET %s: %d objects instead of %d", path, got, objects)
		}
		return nil
	}
}

// Pages returns an operation of one worker that reads one page of ConfigMaps after the other, and begins again after
// the last.
func (c Clients) Pages(path string, page, objects int) Operation {
	var answer bytes.Buffer
	next, seen := "", 0
	return func(ctx context.Context, _ int) error {
		query := fmt.Sprintf("?limit=%d&continue=%s", page, url.QueryEscape(next))
		if _, err := c[0].Do(ctx, http.MethodGet, path+query, nil, &answer); err != nil {
			return err
		}
		seen += bytes.Count(answer.Bytes(), []byte(ConfigMaps))
		if next = TextField(answer.Bytes(), "continue"); next != "" {
			return nil
		}
		if seen != objects {
			return fmt.Errorf("the pages have %d objects instead of %d", seen, objects)
		}
		seen = 0
		return nil
	}
}
