package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Reader reads a backup. What it returns can be trusted when Next has said io.EOF: only then the
// checksum was compared.
type Reader struct {
	Header  Header
	from    *bufio.Reader
	sum     hash.Hash
	read    int64
	decoder *zstd.Decoder

	packed, chunk []byte
	rest          []byte // of the chunk
	summary       *Summary
	seen          Summary
	row           changelog.OldRow
	author        changelog.Author
	err           error // that ended the reading
}

// NewReader reads the header of a backup.
func NewReader(from io.Reader) (*Reader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(mostChunk), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	r := &Reader{from: bufio.NewReaderSize(from, 64<<10), sum: sha256.New(), decoder: decoder}
	if err := r.begin(); err != nil {
		decoder.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) begin() error {
	start, err := r.take(make([]byte, len(magic)+1))
	switch {
	case !bytes.HasPrefix([]byte(magic), start[:min(len(start), len(magic))]):
		return ErrNotBackup
	case err != nil:
		return err
	case start[len(magic)] > version:
		return fmt.Errorf("%w: its format is %d and this plinth reads up to %d; use the plinth that wrote it or a newer one", ErrNewer, start[len(magic)], version)
	case start[len(magic)] != version:
		return altered("it has format %d, which there never was", start[len(magic)])
	}
	if err := r.nextChunk(); err != nil {
		return err
	}
	kind, err := r.byte()
	if err == nil && kind != kindHeader {
		err = altered("it does not begin with a header")
	}
	if err == nil {
		err = r.describe(&r.Header)
	}
	return err
}

// Close frees memory.
func (r *Reader) Close() { r.decoder.Close() }

// Read returns how many bytes were read so far.
func (r *Reader) Read() int64 { return r.read }

// Summary returns what was read so far.
func (r *Reader) Summary() Summary { return r.seen }

// Next returns the next record, io.EOF after the last if the backup is as it was written.
func (r *Reader) Next() (rec Record, err error) {
	if r.err == nil {
		rec, r.err = r.next()
	}
	return rec, r.err
}

func (r *Reader) next() (rec Record, err error) {
	for len(r.rest) == 0 {
		if err := r.nextChunk(); err != nil {
			return rec, err
		}
	}
	if r.summary != nil {
		return rec, altered("something follows its summary")
	}
	kind, err := r.byte()
	if err != nil {
		return rec, err
	}
	switch kind {
	case kindAuthor:
		r.seen.Authors++
		rec.Number, err = r.readAuthor()
		rec.Author = &r.author
	case kindRow:
		r.seen.Rows++
		err = r.readRow()
		r.seen.Bytes += int64(len(r.row.Value))
		rec.Row = &r.row.Row
	case kindOld:
		r.seen.Old++
		err = r.readOld()
		r.seen.Bytes += int64(len(r.row.Value))
		rec.Old = &r.row
	case kindSummary:
		r.summary = &Summary{}
		if err := r.describe(r.summary); err != nil {
			return rec, err
		}
		return r.next()
	default:
		err = r.unknown(kind)
	}
	return rec, err
}

// unknown is the error for a record of a kind that there is not. What is left of the backup tells whether a
// newer plinth wrote it: its checksum holds then.
func (r *Reader) unknown(kind byte) error {
	for {
		size, err := r.nextPacked()
		if err != nil {
			return err
		}
		if size == 0 {
			break
		}
	}
	if err := r.checkSum(); err != nil {
		return err
	}
	return fmt.Errorf("%w: it has records of kind %d, which this one does not know; use the plinth that wrote it or a newer one", ErrNewer, kind)
}

// nextChunk reads the next chunk; io.EOF if that was the last one and all is well.
func (r *Reader) nextChunk() error {
	size, err := r.nextPacked()
	if err != nil {
		return err
	}
	if size == 0 {
		return r.end()
	}
	r.chunk, err = r.decoder.DecodeAll(r.packed, grow(r.chunk, size)[:0:size])
	if err != nil || len(r.chunk) != size {
		return altered("what is before byte %d cannot be unpacked", r.read)
	}
	r.rest = r.chunk
	return nil
}

// nextPacked reads the next chunk, still packed, and returns its size when it is unpacked; 0: there are no more.
func (r *Reader) nextPacked() (size int, err error) {
	if size, err = r.length(); err != nil || size == 0 {
		return 0, err
	}
	packed, err := r.length()
	if err != nil {
		return 0, err
	}
	return size, r.takePacked(packed)
}

// takePacked reads n bytes into packed. It takes memory as they come: n may be wrong.
func (r *Reader) takePacked(n int) error {
	r.packed = r.packed[:0]
	for len(r.packed) < n {
		have := len(r.packed)
		r.packed = slices.Grow(r.packed, min(n-have, fullChunk))[:have+min(n-have, fullChunk)]
		if _, err := r.take(r.packed[have:]); err != nil {
			return err
		}
	}
	return nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// checkSum reads the checksum of all that was read before.
func (r *Reader) checkSum() error {
	want := r.sum.Sum(nil)
	got, err := r.take(make([]byte, sha256.Size))
	if err == nil && !bytes.Equal(want, got) {
		err = altered("its checksum differs")
	}
	return err
}

// end compares the checksum, and what was read with what was written.
func (r *Reader) end() error {
	err := r.checkSum()
	switch {
	case err != nil:
		return err
	case r.summary == nil || *r.summary != r.seen:
		return altered("it has %d rows, which its summary does not say", r.seen.Rows)
	}
	if _, err := r.from.ReadByte(); err != io.EOF {
		return altered("something follows its end at byte %d", r.read)
	}
	return io.EOF
}

// length reads the length of a chunk.
func (r *Reader) length() (int, error) {
	n, err := binary.ReadUvarint(tally{r})
	switch {
	case errors.Is(err, errTally):
		return 0, err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, r.cut()
	case err != nil:
		return 0, altered("before byte %d there is no length", r.read)
	case n > mostChunk:
		return 0, altered("before byte %d there is a chunk of %d bytes", r.read, n)
	}
	return int(n), nil
}

// errTally marks errors of what is read from.
var errTally = errors.New("read the backup")

// tally reads single bytes.
type tally struct{ r *Reader }

func (t tally) ReadByte() (byte, error) {
	b, err := t.r.from.ReadByte()
	if err == nil {
		t.r.read++
		t.r.sum.Write([]byte{b})
	} else if err != io.EOF {
		err = fmt.Errorf("%w: %w", errTally, err)
	}
	return b, err
}

// take fills b. If it cannot, it returns what there is.
func (r *Reader) take(b []byte) ([]byte, error) {
	n, err := io.ReadFull(r.from, b)
	r.read += int64(n)
	r.sum.Write(b[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return b[:n], r.cut()
	}
	return b[:n], err
}

func (r *Reader) cut() error { return fmt.Errorf("%w: it ends after %d bytes", ErrCut, r.read) }

// The following read fields of records out of the chunk.

var errRecord = altered("a record ends within itself")

func (r *Reader) byte() (byte, error) {
	if len(r.rest) == 0 {
		return 0, errRecord
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b, nil
}

func (r *Reader) number() (int64, error) {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		return 0, errRecord
	}
	r.rest = r.rest[n:]
	return v, nil
}

func (r *Reader) bytes() ([]byte, error) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(len(r.rest)-n) {
		return nil, errRecord
	}
	b := r.rest[n : n+int(v)]
	r.rest = r.rest[n+int(v):]
	return b, nil
}

func (r *Reader) describe(into any) error {
	text, err := r.bytes()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return altered("%v", err)
	}
	return nil
}

func (r *Reader) readAuthor() (int64, error) {
	number, err := r.number()
	a := &r.author
	for _, into := range []*string{&a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager} {
		text, e := r.bytes()
		if e != nil {
			err = e
		}
		*into = string(text)
	}
	return number, err
}

func (r *Reader) readRow() error {
	flags, err := r.byte()
	if err != nil {
		return err
	}
	var numbers [4]int64
	for i := range numbers {
		if numbers[i], err = r.number(); err != nil {
			return err
		}
	}
	var texts [3][]byte
	for i := range texts {
		if texts[i], err = r.bytes(); err != nil {
			return err
		}
	}
	row := &r.row.Row
	row.Revision += numbers[0]
	row.CreateRevision = row.Revision - numbers[1]
	row.At += numbers[2]
	row.Deleted, row.Author = flags&flagDeleted != 0, numbers[3]
	row.AuditID, row.Key, row.Value = texts[0], string(texts[1]), texts[2]
	if len(texts[0]) == 0 {
		row.AuditID = nil
	}
	return nil
}

func (r *Reader) readOld() error {
	if err := r.readRow(); err != nil {
		return err
	}
	var numbers [3]int64
	for i := range numbers {
		var err error
		if numbers[i], err = r.number(); err != nil {
			return err
		}
	}
	r.row.UntilID, r.row.UntilAt, r.row.Expires = r.row.Revision+numbers[0], r.row.At+numbers[1], numbers[2]
	return nil
}
