package changelog

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Author is what changes by the same client and in the same way have in common. The log holds each
// once, and a row has its number.
type Author struct {
	User         string // as whom the request ran
	Impersonator string // who asked for it, if that is somebody else
	Verb         string // of the request
	Subresource  string
	Manager      string // field manager
}

// Origin is where a change comes from: its author, and the request's id in the audit log.
type Origin struct {
	Author
	AuditID string
}

const (
	mostAuthorText = 512 // bytes of each text of an author
	mostAuditID    = 63
)

// Plain returns a as the log can hold it: without bytes that are no text, and cut.
func (a Author) Plain() Author {
	for _, text := range []*string{&a.User, &a.Impersonator, &a.Verb, &a.Subresource, &a.Manager} {
		*text = PlainText(*text, mostAuthorText)
	}
	return a
}

// PlainText returns text as the log can hold it: without bytes that are no text, and cut to most bytes.
func PlainText(text string, most int) string {
	if len(text) <= most && utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	for len(text) > most {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// AuditBytes returns an audit id as the log holds it: the 16 bytes of a UUID, and other text as it is,
// but for a blank that tells 16 bytes of text from a UUID.
func AuditBytes(id string) []byte {
	if id == "" {
		return nil
	}
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		return u[:]
	}
	id = strings.TrimRight(PlainText(id, mostAuditID), " ")
	if len(id) == len(uuid.UUID{}) {
		id += " "
	}
	return []byte(id)
}

// AuditText is the opposite of what the log holds of an audit id.
func AuditText(stored []byte) string {
	if len(stored) != len(uuid.UUID{}) {
		return strings.TrimRight(string(stored), " ")
	}
	b := hex.EncodeToString(stored)
	return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
}
