//go:build race

package torture

func init() { buildFlags = append(buildFlags, "-race") } // Go's cache has the packages built so
