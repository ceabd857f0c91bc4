package figures

import (
	"cmp"
	"fmt"
	"html"
	"strings"
)

// SVG is a drawing under way. Coordinates are pixels from the upper left.
type SVG struct{ b strings.Builder }

// Colours of text, lines and judgements.
const (
	Ink   = "#1f2933"
	Muted = "#66727f"
	Grid  = "#e3e8ed"
	Good  = "#2a9d68"
	Bad   = "#d1495b"
)

// Hues tell series apart, also for readers who do not see all colours.
var Hues = []string{"#0b6fb8", "#e07b00", "#3c9d5f", "#9b4f96", "#6b7280"}

// newSVG begins a drawing with a title and a line below it.
func newSVG(width, height float64, title, subtitle string) *SVG {
	s := &SVG{}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&s.b, "<title>%s</title>\n", html.EscapeString(title))
	s.Rect(0, 0, width, height, "#ffffff", 0)
	s.Text(24, 34, "start", 18, Ink, "600", title)
	s.Text(24, 55, "start", 12, Muted, "400", subtitle)
	return s
}

// Text draws text; anchor is start, middle or end.
func (s *SVG) Text(x, y float64, anchor string, size float64, colour, weight, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%g" fill="%s" font-weight="%s">%s</text>`+"\n",
		x, y, anchor, size, colour, weight, html.EscapeString(text))
}

// Upright draws text that reads upwards, around a point.
func (s *SVG) Upright(x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" font-size="12" fill="%s">%s</text>`+"\n",
		x, y, Muted, html.EscapeString(text))
}

// Rect draws a rectangle with round corners.
func (s *SVG) Rect(x, y, w, h float64, colour string, radius float64) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" rx="%g"/>`+"\n", x, y, max(w, 0), h, colour, radius)
}

// Line draws a line, dashed if dash says how.
func (s *SVG) Line(x1, y1, x2, y2 float64, colour string, width float64, dash string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g" stroke-dasharray="%s"/>`+"\n", x1, y1, x2, y2, colour, width, cmp.Or(dash, "none"))
}

// Path draws a line through points, dashed if dash says how.
func (s *SVG) Path(points [][2]float64, colour, dash string) {
	fmt.Fprintf(&s.b, `<polyline fill="none" stroke-width="2.5" stroke-linejoin="round" stroke="%s" stroke-dasharray="%s" points="`, colour, cmp.Or(dash, "none"))
	for _, p := range points {
		fmt.Fprintf(&s.b, "%.1f,%.1f ", p[0], p[1])
	}
	s.b.WriteString(`"/>` + "\n")
}

// Dot draws a filled circle.
func (s *SVG) Dot(x, y, r float64, colour string) {
	fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="%s" stroke="#ffffff" stroke-width="1.5"/>`+"\n", x, y, r, colour)
}

// End returns the drawing.
func (s *SVG) End() string {
	s.b.WriteString("</svg>\n")
	return s.b.String()
}
