package bench

import (
	"fmt"
	"html"
	"strings"
)

// svg is a drawing under way. Coordinates are pixels from the upper left.
type svg struct {
	b             strings.Builder
	width, height float64
}

const (
	ink   = "#1f2933"
	muted = "#66727f"
	grid  = "#e3e8ed"
	good  = "#2a9d68"
	bad   = "#d1495b"
)

// hues tell series apart, also for readers who do not see all colours.
var hues = []string{"#0b6fb8", "#e07b00", "#3c9d5f", "#9b4f96", "#6b7280"}

func newSVG(width, height float64, title, subtitle string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&s.b, "<title>%s</title>\n", html.EscapeString(title))
	s.rect(0, 0, width, height, "#ffffff", 0)
	s.text(24, 34, "start", 18, ink, "600", title)
	s.text(24, 55, "start", 12, muted, "400", subtitle)
	return s
}

// text draws text; anchor is start, middle or end.
func (s *svg) text(x, y float64, anchor string, size float64, colour, weight, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%g" fill="%s" font-weight="%s">%s</text>`+"\n",
		x, y, anchor, size, colour, weight, html.EscapeString(text))
}

func (s *svg) upright(x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" font-size="12" fill="%s">%s</text>`+"\n",
		x, y, muted, html.EscapeString(text))
}

func (s *svg) rect(x, y, w, h float64, colour string, radius float64) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" rx="%g"/>`+"\n", x, y, max(w, 0), h, colour, radius)
}

func (s *svg) line(x1, y1, x2, y2 float64, colour string, width float64, dash string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"`, x1, y1, x2, y2, colour, width)
	if dash != "" {
		fmt.Fprintf(&s.b, ` stroke-dasharray="%s"`, dash)
	}
	s.b.WriteString("/>\n")
}

func (s *svg) path(points [][2]float64, colour string) {
	s.b.WriteString(`<polyline fill="none" stroke-width="2.5" stroke-linejoin="round" stroke="` + colour + `" points="`)
	for i, p := range points {
		if i > 0 {
			s.b.WriteByte(' ')
		}
		fmt.Fprintf(&s.b, "%.1f,%.1f", p[0], p[1])
	}
	s.b.WriteString(`"/>` + "\n")
}

func (s *svg) dot(x, y, r float64, colour string) {
	fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="#ffffff" stroke-width="1.5"/>`+"\n", x, y, r, colour)
}

func (s *svg) end() string {
	s.b.WriteString("</svg>\n")
	return s.b.String()
}
