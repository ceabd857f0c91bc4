package etcdbench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// valueBytes is the length of all values.
const valueBytes = 1024

// pad is text that hardly compresses.
var pad = func() []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	source := rand.New(rand.NewPCG(1, 14))
	b := make([]byte, valueBytes)
	for i := range b {
		b[i] = letters[source.IntN(len(letters))]
	}
	return b
}()

// valueOf returns a value that says which write it is of, and when it was sent.
func valueOf(n int) []byte {
	v := make([]byte, 0, valueBytes)
	v = fmt.Appendf(v, `{"n":"%012d","sent":"%020d","pad":"`, n, time.Now().UnixNano())
	v = append(v, pad[len(v)+2:]...)
	return append(v, `"}`...)
}

// writeOf returns the number of the write that made a value, and when it was sent; ok is false if
// the value is none of valueOf.
func writeOf(v []byte) (n int, sent time.Time, ok bool) {
	head, rest, ok := bytes.Cut(v, []byte(`","sent":"`))
	if !ok || len(rest) < 20 || !bytes.HasPrefix(head, []byte(`{"n":"`)) {
		return 0, sent, false
	}
	n, err := strconv.Atoi(string(head[len(`{"n":"`):]))
	at, other := strconv.ParseInt(string(rest[:20]), 10, 64)
	return n, time.Unix(0, at), err == nil && other == nil && len(v) == valueBytes
}
