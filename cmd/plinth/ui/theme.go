package ui

import "net/http"

// themeCookie is written by the script of the button, in static/app.js. It is no secret, and read here so that a page has its
// colours before any script runs.
const themeCookie = "plinth-theme"

// themeOf is what the visitor has chosen, light or dark: in the address, else with the button. Without a choice the style
// sheet does what the system does.
func themeOf(r *http.Request) string {
	chosen := []string{r.URL.Query().Get("theme")}
	for _, c := range r.CookiesNamed(themeCookie) {
		chosen = append(chosen, c.Value)
	}
	for _, name := range chosen {
		if name == "light" || name == "dark" {
			return name
		}
	}
	return ""
}
