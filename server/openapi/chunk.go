package openapi

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/plinth-io/plinth/server/response"
)

// chunk is a deflated piece of a document. It ends at a byte boundary and refers to nothing before it, so
// chunks can be joined without new compression. When one of five hundred definitions changes, only its chunk
// is compressed.
type chunk struct {
	deflated []byte
	size     int64  // of the plain text
	sum      uint32 // CRC-32 of the plain text
	shift    uint32 // the factor by which size further bytes change a sum; see joinSums
	shared   bool   // other documents contain it, too; see cache.share
}

var deflaters = sync.Pool{New: func() any {
	z, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err) // the compression level is not valid
	}
	return z
}}

func deflate(b []byte) chunk {
	var buf bytes.Buffer
	z := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(z)
	z.Reset(&buf)
	_, _ = z.Write(b) // writing to a bytes.Buffer cannot fail
	_ = z.Flush()
	return chunk{deflated: bytes.Clone(buf.Bytes()), size: int64(len(b)), sum: crc32.ChecksumIEEE(b), shift: shift(int64(len(b)))}
}

// body is a document of joined chunks.
type body []chunk

// The frame of a gzip file (RFC 1952): a header with deflate as its method, and after the chunks an empty
// block that is marked as the last one.
var (
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	lastBlock  = []byte{1, 0, 0, 0xff, 0xff}
)

// gzip returns the pieces of the compressed body.
func (b body) gzip() (pieces [][]byte, length int) {
	pieces = append(pieces, gzipHeader)
	var sum uint32
	var size int64
	for _, c := range b {
		pieces = append(pieces, c.deflated)
		sum, size = joinSums(sum, c), size+c.size
	}
	end := binary.LittleEndian.AppendUint32(lastBlock[:len(lastBlock):len(lastBlock)], sum)
	pieces = append(pieces, binary.LittleEndian.AppendUint32(end, uint32(size)))
	for _, p := range pieces {
		length += len(p)
	}
	return pieces, length
}

// plain reads the plain text of the whole body. A single chunk has no end mark, so reading it alone would
// fail at its end.
func (b body) plain() io.Reader {
	readers := make([]io.Reader, 0, 2*len(b)+1)
	for _, c := range b {
		readers = append(readers, bytes.NewReader(c.deflated))
	}
	return flate.NewReader(io.MultiReader(append(readers, bytes.NewReader(lastBlock))...))
}

// write sends the body compressed, or as plain text to a client that does not accept gzip.
func (b body) write(w http.ResponseWriter, r *http.Request) error {
	if response.AcceptsGzip(r) {
		pieces, length := b.gzip()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(length))
		for _, p := range pieces {
			if _, err := w.Write(p); err != nil {
				return nil // the client is gone
			}
		}
		return nil
	}
	_, _ = io.Copy(w, b.plain())
	return nil
}

// read returns the plain text of the body.
func (b body) read() ([]byte, error) {
	size := int64(bytes.MinRead)
	for _, c := range b {
		size += c.size
	}
	out := bytes.NewBuffer(make([]byte, 0, size))
	if _, err := out.ReadFrom(b.plain()); err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return out.Bytes(), nil
}

// joinSums returns the CRC-32 of a text with the sum a followed by c. A sum is the remainder of a polynomial;
// each following byte multiplies it by x to the power of 8.
func joinSums(a uint32, c chunk) uint32 { return multiply(a, c.shift) ^ c.sum }

// shift returns x to the power of 8n.
func shift(n int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<23 // x to the power of 0 and of 8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return power
}

// multiply returns the product of two polynomials modulo that of the CRC. The highest bits are the lowest
// powers.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}
