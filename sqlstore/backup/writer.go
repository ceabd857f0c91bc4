package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Writer writes a backup.
type Writer struct {
	to      io.Writer
	sum     hash.Hash
	encoder *zstd.Encoder

	chunk, packed []byte
	last          changelog.Row // id and time of the row before
	summary       Summary
	written       int64
}

// NewWriter begins a backup.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	w := &Writer{to: to, sum: sha256.New(), encoder: encoder}
	if err := w.write(append([]byte(magic), version)); err != nil {
		return nil, err
	}
	return w, w.describe(kindHeader, h)
}

// Author adds an author. It comes before the rows that have its number.
func (w *Writer) Author(number int64, a changelog.Author) error {
	w.summary.Authors++
	w.chunk = binary.AppendVarint(append(w.chunk, kindAuthor), number)
	for _, text := range []string{a.User, a.Impersonator, a.Verb, a.Subresource, a.Manager} {
		w.chunk = append(binary.AppendUvarint(w.chunk, uint64(len(text))), text...)
	}
	return w.flush(fullChunk)
}

// Row adds a row of the log.
func (w *Writer) Row(r *changelog.Row) error {
	w.summary.Rows++
	w.row(kindRow, r)
	return w.flush(fullChunk)
}

// Old adds an old version.
func (w *Writer) Old(r *changelog.OldRow) error {
	w.summary.Old++
	w.row(kindOld, &r.Row)
	for _, n := range []int64{r.UntilID - r.Revision, r.UntilAt - r.At, r.Expires} {
		w.chunk = binary.AppendVarint(w.chunk, n)
	}
	return w.flush(fullChunk)
}

func (w *Writer) row(kind byte, r *changelog.Row) {
	w.summary.Bytes += int64(len(r.Value))
	flags := byte(0)
	if r.Deleted {
		flags |= flagDeleted
	}
	b := append(w.chunk, kind, flags)
	b = binary.AppendVarint(b, r.Revision-w.last.Revision)
	b = binary.AppendVarint(b, r.Revision-r.CreateRevision)
	b = binary.AppendVarint(b, r.At-w.last.At)
	b = binary.AppendVarint(b, r.Author)
	b = append(binary.AppendUvarint(b, uint64(len(r.AuditID))), r.AuditID...)
	b = append(binary.AppendUvarint(b, uint64(len(r.Key))), r.Key...)
	w.chunk = append(binary.AppendUvarint(b, uint64(len(r.Value))), r.Value...)
	w.last.Revision, w.last.At = r.Revision, r.At
}

// Close ends the backup, without which it is no backup. It leaves what it was written to open.
func (w *Writer) Close() (Summary, error) {
	err := w.describe(kindSummary, w.summary)
	if err == nil {
		err = w.flush(1)
	}
	if err == nil {
		err = w.write([]byte{0})
	}
	if err == nil {
		err = w.write(w.sum.Sum(nil))
	}
	return w.summary, err
}

// Written returns how many bytes the backup has so far.
func (w *Writer) Written() int64 { return w.written }

func (w *Writer) describe(kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.chunk = append(binary.AppendUvarint(append(w.chunk, kind), uint64(len(text))), text...)
	return w.flush(fullChunk)
}

// flush writes a chunk that has at least so many bytes.
func (w *Writer) flush(least int) error {
	switch n := len(w.chunk); {
	case n < least:
		return nil
	case n > mostChunk:
		return fmt.Errorf("an object has %d bytes, and a backup takes at most %d", n, mostChunk)
	}
	w.packed = w.encoder.EncodeAll(w.chunk, w.packed[:0])
	head := binary.AppendUvarint(nil, uint64(len(w.chunk)))
	head = binary.AppendUvarint(head, uint64(len(w.packed)))
	w.chunk = w.chunk[:0]
	if err := w.write(head); err != nil {
		return err
	}
	return w.write(w.packed)
}

func (w *Writer) write(b []byte) error {
	w.sum.Write(b)
	n, err := w.to.Write(b)
	w.written += int64(n)
	return err
}
