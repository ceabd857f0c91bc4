package nearest

import "testing"

func TestOf(t *testing.T) {
	known := []string{"serve", "status", "version", "listen", "dsn", "sslmode", "connect_timeout"}
	for typed, want := range map[string]string{
		"srve": "serve", "serv": "serve", "sevre": "serve", "lisen": "listen", "LISTEN": "listen",
		"ssl_mode": "sslmode", "connect-timeout": "connect_timeout", "dns": "dsn", "verison": "version",
		"": "", "x": "", "nope": "", "hunter2": "", "stat": "status", "server1": "serve",
	} {
		if got := Of(typed, known); got != want {
			t.Errorf("Of(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
