package ui

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// pictured are the pages of which docs/ui.md has pictures.
var pictured = []struct{ name, address, has string }{
	{"overview", "?ns=shop", "What changed"},
	{"list", "kinds/deployments.apps?ns=shop", "web"},
	{"object", "objects/deployments.apps/shop/web?ns=shop", "apiVersion"},
	{"timeline", "objects/deployments.apps/shop/web/timeline?ns=shop", "bob"},
	{"blame", "objects/configmaps/shop/settings/blame?ns=shop", "ann"},
	{"now", "now?ns=shop", "What happens"},
	{"trash", "trash?ns=shop", "banner"},
	{"server", "server", "Revision"},
	{"rights", "rights", "Rights"},
	{"definitions", "definitions/coupons.shop.example.com", "percent"},
}

// TestPictures opens each page in light and dark: axe finds nothing, and no script fails. With PLINTH_UI_PICTURES it
// keeps pictures in that folder; make ui-pictures does so.
func TestPictures(t *testing.T) {
	base, address := local(t, startShop(t, "").config)
	b := tabAt(t, base, address)
	folder := os.Getenv("PLINTH_UI_PICTURES")
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for _, p := range pictured {
			b.open(p.address)
			b.sees(p.has)
			b.accessible()
			if folder == "" {
				continue
			}
			time.Sleep(time.Second) // charts and lists are drawn
			picture := play(b, chromedp.CaptureScreenshot())
			if err := os.WriteFile(filepath.Join(folder, p.name+"-"+theme+".png"), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.sound()
}
