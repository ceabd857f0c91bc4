package object

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// Root begins every key, as it begins every key of kube-apiserver's etcd.
	Root = "/registry/"
	// InternalGroup is the group of what servers keep for each other. No API group has
	// such a name, so no client sees its resources.
	InternalGroup = "_plinth"

	coreGroup = "core" // the name of the core group, which is "" elsewhere
)

// Prefix returns what all keys of a resource begin with: /registry/<group>/<resource>/.
// The core group is "".
func Prefix(group, resource string) string {
	if group == "" {
		group = coreGroup
	}
	return Root + group + "/" + resource + "/"
}

// Key returns the key of an object of the resource that prefix is of. namespace is empty
// for cluster-scoped resources.
func Key(prefix, namespace, name string) string {
	if namespace == "" {
		return prefix + name
	}
	return prefix + namespace + "/" + name
}

// SplitPrefix is the inverse of Prefix. resource is empty if prefix is not one of Prefix.
func SplitPrefix(prefix string) (group, resource string) {
	group, resource, _ = strings.Cut(strings.Trim(strings.TrimPrefix(prefix, Root), "/"), "/")
	if group == coreGroup {
		group = ""
	}
	return group, resource
}

// ResourceOf returns the part of key that names its resource, with the trailing slash:
// /registry/<group>/<resource>/. It is empty if key has fewer segments.
func ResourceOf(key string) string { return changelog.ResourceOf(key) }

func checkKey(key string) error {
	switch {
	case ResourceOf(key) == "":
		return fmt.Errorf("%w: %q does not name a resource", changelog.ErrKey, key)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, isControl):
		return fmt.Errorf("%w: %q has control characters or is not UTF-8", changelog.ErrKey, key)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
