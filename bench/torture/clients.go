package torture

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	objects    = 8 // of each namespace
	pageLength = 3
	manager    = "torture"
)

// caller is a client that calls.
type caller struct {
	*client
	seen  *seen
	space string          // prefix of the namespaces
	pause time.Duration   // between calls, on average
	knows map[string]Item // what it knows of objects; a Revision of 0: that there is none
	wrote int
}

// namespaces of a round.
func namespaces(space string) []string { return []string{space + "a", space + "b"} }

func pathOf(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return "/api/v1/namespaces/" + namespace + "/configmaps/" + name
}

// listPath is that of a list of keys with a prefix: NAMESPACE/, or the beginning of all namespaces.
func (c *caller) listPath(prefix string) string {
	if namespace, ok := strings.CutSuffix(prefix, "/"); ok {
		return "/api/v1/namespaces/" + namespace + "/configmaps"
	}
	return "/api/v1/configmaps"
}

// play calls until stop ends. A call that has begun goes on to its end.
func (c *caller) play(stop, ctx context.Context) {
	for stop.Err() == nil {
		call := c.playOne(ctx)
		pause := time.Duration(c.rand.Int64N(int64(2 * c.pause)))
		failed := call.Status == 0 || call.Status >= 500
		if failed {
			pause += 50 * time.Millisecond
		}
		if failed || c.rand.IntN(10) == 0 {
			c.move()
		}
		_ = sleep.For(stop, pause)
	}
}

func (c *caller) anyKey() string {
	return fmt.Sprintf("%s/cm-%d", namespaces(c.space)[c.rand.IntN(2)], c.rand.IntN(objects))
}

// range returns what a list covers.
func (c *caller) anyRange() string {
	if c.rand.IntN(3) == 0 {
		return c.space
	}
	return namespaces(c.space)[c.rand.IntN(2)] + "/"
}

func (c *caller) playOne(ctx context.Context) *Call {
	key := c.anyKey()
	known, told := c.knows[key]
	switch n := c.rand.IntN(100); {
	case told && known.Revision == 0 && n < 45:
		return c.create(ctx, key)
	case n < 25:
		return c.update(ctx, key, known.Revision)
	case n < 35:
		return c.patch(ctx, key)
	case n < 43:
		return c.apply(ctx, key)
	case n < 48:
		return c.delete(ctx, key, 0)
	case n < 52:
		return c.delete(ctx, key, known.Revision)
	case n < 55:
		return c.create(ctx, key)
	case n < 72:
		return c.get(ctx, key, Newest)
	case n < 76:
		return c.get(ctx, key, Any)
	case n < 86:
		return c.list(ctx, Newest)
	case n < 94:
		return c.pages(ctx)
	default:
		return c.list(ctx, []string{Any, Exact, NotOlder}[c.rand.IntN(3)])
	}
}

// value returns one that nobody else writes.
func (c *caller) value() string {
	c.wrote++
	return fmt.Sprintf("%d-%d", c.id, c.wrote)
}

func (c *caller) begin(kind, key string) *Call {
	return &Call{ID: c.nextID(), Client: c.id, Replica: c.at, Kind: kind, Key: key, Begin: c.history.Now()}
}

// end records a call, and what the client has learned by it.
func (c *caller) end(call *Call) *Call {
	call.End = c.history.Now()
	c.history.add(call)
	if call.OK() {
		c.seen.add(call.Revision)
	}
	switch {
	case call.Kind == List || call.Kind == Pages || call.Read != Newest:
	case call.Status == 404, call.Kind == Delete && call.OK():
		c.knows[call.Key] = Item{}
	case call.OK():
		c.knows[call.Key] = call.Items[0]
	default:
		delete(c.knows, call.Key)
	}
	return call
}

// write sends a write whose answer is the object.
func (c *caller) write(ctx context.Context, call *Call, q request) *Call {
	if answer := c.send(ctx, call, q); answer != nil && call.OK() && call.Kind != Delete {
		item := answer.item()
		call.Revision, call.Items = item.Revision, []Item{item}
	}
	return c.end(call)
}

func (c *caller) create(ctx context.Context, key string) *Call {
	call := c.begin(Create, key)
	call.Sent = Content{V: c.value()}
	return c.write(ctx, call, request{"POST", strings.TrimSuffix(pathOf(key), key[strings.Index(key, "/"):]), "application/json", configMap(key, call.Sent, 0)})
}

func (c *caller) update(ctx context.Context, key string, expect int64) *Call {
	call := c.begin(Update, key)
	call.Sent, call.Expect = Content{c.value(), c.knows[key].A}, expect
	return c.write(ctx, call, request{"PUT", pathOf(key), "application/json", configMap(key, call.Sent, expect)})
}

func (c *caller) patch(ctx context.Context, key string) *Call {
	call := c.begin(Patch, key)
	call.Sent = Content{V: c.value()}
	media, body := "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":%q}}`, call.Sent.V)
	if c.rand.IntN(2) == 0 {
		media = "application/strategic-merge-patch+json"
	}
	return c.write(ctx, call, request{"PATCH", pathOf(key), media, []byte(body)})
}

func (c *caller) apply(ctx context.Context, key string) *Call {
	call := c.begin(Apply, key)
	call.Sent = Content{A: c.value()}
	return c.write(ctx, call, request{"PATCH", pathOf(key) + "?force=true&fieldManager=" + manager, "application/apply-patch+yaml", configMap(key, call.Sent, 0)})
}

func (c *caller) delete(ctx context.Context, key string, expect int64) *Call {
	call := c.begin(Delete, key)
	call.Expect = expect
	var body []byte
	if expect != 0 {
		body = fmt.Appendf(nil, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, expect)
	}
	return c.write(ctx, call, request{"DELETE", pathOf(key), "application/json", body})
}

func (c *caller) get(ctx context.Context, key, read string) *Call {
	call := c.begin(Get, key)
	call.Read = read
	path := pathOf(key)
	if read == Any {
		path += "?resourceVersion=0"
	}
	if answer := c.send(ctx, call, request{method: "GET", path: path}); answer != nil && call.OK() {
		call.Items = []Item{answer.item()}
		call.Revision = call.Items[0].Revision
	}
	return c.end(call)
}

func (c *caller) list(ctx context.Context, read string) *Call {
	call := c.begin(List, c.anyRange())
	query := url.Values{}
	if call.Read = read; read == Exact || read == NotOlder {
		if call.At = c.seen.any(c.rand); call.At == 0 {
			call.Read = Any
		}
	}
	switch call.Read {
	case Any:
		query.Set("resourceVersion", "0")
	case Exact:
		query.Set("resourceVersionMatch", "Exact")
	case NotOlder:
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	if call.At != 0 {
		query.Set("resourceVersion", strconv.FormatInt(call.At, 10))
	}
	if answer := c.send(ctx, call, request{method: "GET", path: c.listPath(call.Key) + "?" + query.Encode()}); answer != nil && call.OK() {
		call.take(answer)
	}
	return c.end(call)
}

// take notes the objects of a list in the call's range.
func (c *Call) take(list *wire) {
	c.Revision = list.revision()
	for i := range list.Items {
		if item := list.Items[i].item(); within(item.Key, c.Key) {
			c.Items = append(c.Items, item)
		}
	}
}

// pages reads all pages at the revision of the first. Each may come from another replica.
func (c *caller) pages(ctx context.Context) *Call {
	call := c.begin(Pages, c.anyRange())
	path := fmt.Sprintf("%s?limit=%d", c.listPath(call.Key), pageLength)
	next := ""
	for tries := 0; tries < 5; {
		answer := c.send(ctx, call, request{method: "GET", path: path + "&continue=" + url.QueryEscape(next)})
		if answer == nil || !call.OK() {
			if call.Partly = next != ""; !call.Partly || call.Status == 410 {
				break
			}
			tries++
			c.move()
			_ = sleep.For(ctx, 50*time.Millisecond)
			continue
		}
		if next == "" {
			call.Settled = c.history.Now()
		}
		call.take(answer)
		call.Partly = false
		if next = answer.Metadata.Continue; next == "" {
			break
		}
		if c.rand.IntN(4) == 0 {
			c.move()
		}
	}
	if call.Status == 410 {
		call.At = call.Revision
	}
	return c.end(call)
}
