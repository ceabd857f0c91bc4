package sqlstore

import (
	"cmp"
	"iter"
	"sync"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	pageFirst = 64      // rows of a first page
	pageMost  = 1024    // rows of any page
	pageBytes = 4 << 20 // what a page should not exceed
)

// pager chooses how many rows to ask the log for, so that small rows are read in few
// queries and large ones do not fill the memory. Its zero value is ready.
type pager struct {
	n      int
	weight int // what a page should not exceed; 0: pageBytes
}

func (p *pager) limit() int {
	if p.n == 0 {
		p.n = pageFirst
	}
	return p.n
}

// read adapts to a page of some rows and bytes.
func (p *pager) read(rows, bytes int) {
	if rows > 0 {
		p.n = max(1, min(p.n*2, pageMost, cmp.Or(p.weight, pageBytes)/(bytes/rows+1)))
	}
}

// grow makes the next page larger, whatever it weighs.
func (p *pager) grow() { p.n = 4 * p.limit() }

// pagesOf cuts [from, to) into pages by key: next returns the rows of a page and the
// iteration goes on behind its last key until a page is not full.
func pagesOf(from string, next func(from string, limit int) ([]changelog.Row, error)) iter.Seq2[[]changelog.Row, error] {
	return func(yield func([]changelog.Row, error) bool) {
		var p pager
		for {
			limit := p.limit()
			rows, err := next(from, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			more := changelog.Full(rows, limit)
			if more { // before the rows belong to somebody else
				from = changelog.After(rows[len(rows)-1].Key)
				p.read(len(rows), sizeOf(rows))
			}
			if !yield(rows, nil) || !more {
				return
			}
		}
	}
}

// ahead reads a page while the one before it is worked on. It ends with the iteration.
func ahead(pages iter.Seq2[[]changelog.Row, error]) iter.Seq2[[]changelog.Row, error] {
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

func sizeOf(rows []changelog.Row) (bytes int) {
	for i := range rows {
		bytes += len(rows[i].Value) + len(rows[i].Key)
	}
	return bytes
}
