package ui

import (
	"net/http/httptest"
	"testing"

	"github.com/plinth-io/plinth/server/servertest"
)

// TestThemeOf: what is chosen in the address comes before the cookie, and anything but light and dark is no choice.
func TestThemeOf(t *testing.T) {
	for _, c := range []struct{ address, cookie, want string }{
		{"/", "", ""}, {"/", "dark", "dark"}, {"/", "light", "light"}, {"/?theme=light", "dark", "light"}, {"/?theme=dark", "", "dark"},
		{"/?theme=pink", "dark", "dark"}, {"/?theme=%22%3E%3Cscript%3E", "", ""}, {"/", "DARK", ""}, {"/", "dark><script>", ""},
	} {
		r := httptest.NewRequest("GET", c.address, nil)
		if c.cookie != "" {
			r.Header.Set("Cookie", "plinth-theme="+c.cookie)
		}
		if got := themeOf(r); got != c.want {
			t.Errorf("%s with the cookie %q: %q, not %q", c.address, c.cookie, got, c.want)
		}
	}
}

// TestTheme: a page is as light or dark as the system, until somebody presses the button, and the next page is that way
// without a script.
func TestTheme(t *testing.T) {
	srv := servertest.Start(t)
	base, address := local(t, srv.Config)
	b := tabAt(t, base, address)
	const dark = `matchMedia("(prefers-color-scheme: dark)").matches + " " + getComputedStyle(document.body).backgroundColor`
	look := func(address, want string) {
		t.Helper()
		if b.open(address); eval[string](b, dark) != want {
			t.Errorf("%q is %s, not %s", address, eval[string](b, dark), want)
		}
	}
	b.theme("light")
	look("definitions", "false rgb(251, 249, 245)")
	b.theme("dark")
	look("definitions", "true rgb(21, 19, 15)")
	look("definitions?theme=light", "true rgb(251, 249, 245)")
	look("definitions?theme=pink", "true rgb(21, 19, 15)")
	b.wait(`document.readyState === "complete"`)
	eval[int](b, `document.querySelector("#theme").click(), 1`)
	b.wait(`document.documentElement.dataset.theme === "light" && document.cookie === "plinth-theme=light"`) // the cookie is kept a moment later
	look("trash", "true rgb(251, 249, 245)")
	if served := eval[string](b, `fetch(location).then((r) => r.text()).then((t) => t.match(/<html[^>]*>/)[0])`); served != `<html lang="en" data-theme="light">` {
		t.Errorf("the server begins the page with %s", served)
	}
	b.sound()
}
