package ui

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/logging"
)

// axe is the script that finds what keeps people from using a page; see testdata/axe.
//
//go:embed testdata/axe/axe.min.js
var axe string

// chromium is one browser for all tests, without a window; endChromium ends it.
var (
	chromium    = sync.OnceValues(startChromium)
	endChromium = func() {}
)

func startChromium() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("chromium is not installed; as root make test does that; on Debian and Ubuntu: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1400, 900))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx)
	endChromium = stop
	return ctx, chromedp.Do(ctx)
}

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	code := m.Run()
	endChromium()
	os.Exit(code)
}

// tab is a page in a browser that shares nothing with others: no cookies, no storage.
type tab struct {
	testing.TB
	ctx context.Context
	url string // of the page's base

	mu     sync.Mutex
	faults []string // errors that the browser's console has
}

// longest bounds what a test waits for in a browser.
const longest = time.Minute

// tabAt opens a browser at an address that lets it in to the page of a base.
func tabAt(t testing.TB, base, address string) *tab {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{TB: t, ctx: ctx, url: base}
	messages := chromedp.Console(ctx)
	go b.listen(messages)
	if err := chromedp.Do(ctx); err != nil { // makes the tab; a time limit of this call would be the tab's
		t.Fatal(err)
	}
	play(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { // as if it were in front: else what is typed goes nowhere
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	if address != "" {
		b.open(address)
		b.wait(`!!document.querySelector("main h1")`)
	}
	return b
}

func (b *tab) listen(messages func(func(chromedp.ConsoleMessage, error) bool)) {
	for m, err := range messages {
		if err != nil {
			return
		}
		if m.IsException() || m.Type == chromedp.ConsoleError {
			b.mu.Lock()
			b.faults = append(b.faults, m.String())
			b.mu.Unlock()
		}
	}
}

// sound fails the test if a script has failed, or the policy has refused one.
func (b *tab) sound() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		b.Errorf("the console has: %s", fault)
	}
}

// play runs an action in a tab.
func play[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// eval evaluates a script, which may be a promise.
func eval[T any](b *tab, script string) T {
	b.Helper()
	return play(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// open goes to an address; one without a host is below the base.
func (b *tab) open(address string) {
	b.Helper()
	if !strings.HasPrefix(address, "http") {
		address = b.url + address
	}
	play(b, chromedp.Navigate(address))
}

// wait waits until a script is true, on whatever page the tab is by then.
func (b *tab) wait(script string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		var ok bool
		if ok, err = chromedp.Run(ctx, chromedp.Evaluate[bool](script)); ok {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.Fatalf("%s: %v; the page is\n%s", script, err, text)
}

// sees waits for a text on the page.
func (b *tab) sees(text string) {
	b.Helper()
	quoted, _ := json.Marshal(text)
	b.wait(`document.body.innerText.includes(` + string(quoted) + `)`)
}

// keys types, when the page is there with its scripts.
func (b *tab) keys(text string) {
	b.Helper()
	b.wait(`document.readyState === "complete"`)
	play(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range text {
			for _, k := range pressed(kb.Encode(r)) {
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *k); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// pressed joins the events of a key with that of its character, which a script that handles the key suppresses then, as
// in a browser that somebody types into.
func pressed(all []*input.DispatchKeyEventParams) []*input.DispatchKeyEventParams {
	var out []*input.DispatchKeyEventParams
	for _, k := range all {
		if k.Type == kb.KeyChar {
			out[len(out)-1].Text = k.Text
			continue
		}
		out = append(out, k)
	}
	return out
}

// theme chooses light or dark.
func (b *tab) theme(name string) {
	b.Helper()
	play(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// accessible fails the test if axe finds something.
func (b *tab) accessible() {
	b.Helper()
	eval[int](b, axe+";1")
	found := eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
		v.id + ": " + v.help + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`)
	for _, violation := range found {
		b.Errorf("axe at %s: %s", eval[string](b, "location.pathname+location.search"), violation)
	}
}

// local serves the page for a configuration as plinth ui does, and returns its base and the address that lets a browser in.
func local(t testing.TB, config *clientrest.Config) (base, address string) {
	t.Helper()
	var page http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(w, r) }))
	door := NewLocal(config, server.Listener.Addr().String())
	page = New(Options{Base: door.Base(), Door: door})
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + door.Base(), door.URL()
}
