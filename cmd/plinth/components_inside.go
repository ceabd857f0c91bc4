//go:build cluster

package main

import "github.com/plinth-io/plinth/server/components/upstream"

// With the tag cluster the program has the components.
func init() { makeComponents = upstream.New }
