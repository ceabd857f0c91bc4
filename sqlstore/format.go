package sqlstore

import "github.com/plinth-io/plinth/sqlstore/changelog"

// Format says what keys and values mean to a Store. Its methods are quick and have no state.
// What a Store serves is one layer above: package object has the Format of Kubernetes objects.
type Format interface {
	// Range returns the range that all keys are in.
	Range() (from, to string)
	// ResourceOf returns the resource of key: a prefix of it that some keys have in common.
	// State, snapshots, window and wake-ups are kept for each resource apart.
	ResourceOf(key string) string
	// CheckKey returns an error that wraps ErrKey for a key that is not to be written.
	CheckKey(key string) error
	// Show returns a stored value as readers see it, and Hide the value of what they see.
	Show(value []byte, revision int64) []byte
	Hide(shown []byte, revision int64) []byte
	// TermOf returns what reads an attribute from keys and values. It is called once for an attribute;
	// attributes are the Format's to name.
	TermOf(attribute string) TermOf
	// Plain tells a value from what a Transformer has made of one. Neither is empty.
	Plain(stored []byte) bool
	// Frees says whether a change with that value is a step towards freeing space, so that it is taken when there
	// is hardly any.
	Frees(deletes bool, value []byte) bool
}

// Raw is the Format of any bytes: one resource, whose name is empty.
type Raw struct{}

var _ Format = Raw{}

func (Raw) Range() (from, to string)          { return "", changelog.End }
func (Raw) ResourceOf(string) string          { return "" }
func (Raw) CheckKey(string) error             { return nil }
func (Raw) Show(value []byte, _ int64) []byte { return value }
func (Raw) Hide(value []byte, _ int64) []byte { return value }
func (Raw) TermOf(string) TermOf              { return nothing }
func (Raw) Plain([]byte) bool                 { return true }
func (Raw) Frees(deletes bool, _ []byte) bool { return deletes }
