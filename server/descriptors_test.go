package server

import "testing"

// Where few files may be open, fewer connections may.
func TestFitConnections(t *testing.T) {
	for _, tt := range []struct {
		most  int
		files uint64
		want  int
	}{
		{4096, 1 << 20, 4096},
		{4096, 4096 + otherFiles, 4096},
		{4096, 4096, 4096 - otherFiles},
		{4096, 1024, 1024 - otherFiles},
		{100, 1024, 100},
		{4096, 64, 32},
		{4096, 1, 1},
		{-1, 64, -1},
		{4096, 1 << 63, 4096}, // no limit
	} {
		if got := fitConnections(tt.most, tt.files); got != tt.want {
			t.Errorf("--max-connections %d, %d files: %d connections, want %d", tt.most, tt.files, got, tt.want)
		}
	}
}
