package main

import (
	"context"
	"log/slog"
)

// atLeast is a Handler that leaves out records below a level.
type atLeast struct {
	slog.Handler
	least slog.Level
}

// Enabled implements slog.Handler.
func (a atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= a.least && a.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (a atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{a.Handler.WithAttrs(attrs), a.least}
}

// WithGroup implements slog.Handler.
func (a atLeast) WithGroup(name string) slog.Handler {
	return atLeast{a.Handler.WithGroup(name), a.least}
}
