package pages

import (
	"cmp"
	"iter"
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	First     = 64      // rows of a first page
	Most      = 1024    // rows of any page
	pageBytes = 4 << 20 // what a page should not exceed
)

// Pager chooses how many rows to ask the log for, so that small rows are read in few
// queries and large ones do not fill the memory. Its zero value is ready.
type Pager struct {
	N      int // rows of the next page; 0: First
	Weight int // what a page should not exceed; 0: pageBytes
}

// Limit returns how many rows to ask for.
func (p *Pager) Limit() int {
	if p.N == 0 {
		p.N = First
	}
	return p.N
}

// Read adapts to a page of some rows and bytes.
func (p *Pager) Read(rows, bytes int) {
	if rows > 0 {
		p.N = max(1, min(p.N*2, Most, cmp.Or(p.Weight, pageBytes)/(bytes/rows+1)))
	}
}

// Grow makes the next page larger, whatever it weighs.
func (p *Pager) Grow() { p.N = 4 * p.Limit() }

// ByKey cuts [from, to) into pages by key: next returns the rows of a page and the
// iteration goes on behind its last key until a page is not full.
func ByKey(from string, next func(from string, limit int) ([]changelog.Row, error)) iter.Seq2[[]changelog.Row, error] {
	return func(yield func([]changelog.Row, error) bool) {
		var p Pager
		for {
			limit := p.Limit()
			rows, err := next(from, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			more := changelog.Full(rows, limit)
			if more { // before the rows belong to somebody else
				from = changelog.After(rows[len(rows)-1].Key)
				p.Read(len(rows), Bytes(rows))
			}
			if !yield(rows, nil) || !more {
				return
			}
		}
	}
}

// Ahead reads a page while the one before it is worked on. It ends with the iteration.
func Ahead(pages iter.Seq2[[]changelog.Row, error]) iter.Seq2[[]changelog.Row, error] {
	type page struct {
		rows []changelog.Row
		err  error
	}
	return func(yield func([]changelog.Row, error) bool) {
		read, stop := make(chan page), make(chan struct{})
		var reading sync.WaitGroup
		reading.Go(func() {
			defer close(read)
			for rows, err := range pages {
				select {
				case read <- page{rows, err}:
				case <-stop:
					return
				}
			}
		})
		defer reading.Wait()
		defer close(stop)
		for p := range read {
			if !yield(p.rows, p.err) {
				return
			}
		}
	}
}

// Bytes is what rows take.
func Bytes(rows []changelog.Row) (bytes int) {
	for i := range rows {
		bytes += len(rows[i].Value) + len(rows[i].Key)
	}
	return bytes
}
