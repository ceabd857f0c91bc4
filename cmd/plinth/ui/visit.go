package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// connection is the way of a visitor's requests to the API. It is shared by all requests with the same credentials.
type connection struct {
	host    string
	client  *past.Client
	rest    clientrest.Interface
	objects dynamic.Interface

	mu     sync.Mutex
	kinds  []past.Served
	failed error     // why kinds are not known, or old
	asked  time.Time // when the server was asked for them
	frame  remembered

	days dayCache

	used time.Time // guarded by connections
}

// mostConnections bounds how many visitors' clients are kept.
const mostConnections = 200

// connections are those of the visitors of late.
type connections struct {
	mu    sync.Mutex
	byKey map[string]*connection
}

func newConnections() *connections { return &connections{byKey: map[string]*connection{}} }

// get returns the connection of a visitor.
func (c *connections) get(key string, config *clientrest.Config) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.byKey[key]
	if conn == nil {
		return connect(config)
	}
	conn.used = time.Now()
	return conn, nil
}

// keep keeps a connection of a visitor whose credentials are good.
func (c *connections) keep(key string, conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key] == nil {
		if len(c.byKey) >= mostConnections {
			c.dropOldest()
		}
		conn.used = time.Now()
		c.byKey[key] = conn
	}
}

func (c *connections) dropOldest() {
	oldest := ""
	for key, conn := range c.byKey {
		if oldest == "" || conn.used.Before(c.byKey[oldest].used) {
			oldest = key
		}
	}
	delete(c.byKey, oldest)
}

func connect(config *clientrest.Config) (*connection, error) {
	client, err := past.New(config, nil)
	if err != nil {
		return nil, err
	}
	config = clientrest.CopyConfig(config)
	config.QPS = -1 // the server has its own limits
	config.WarningHandler = clientrest.NoWarnings{}
	config.UserAgent = userAgent
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	rest, err := clientrest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &connection{host: config.Host, client: client, rest: rest, objects: objects}, nil
}

// userAgent is the manager of what the page writes.
const userAgent = "plinth-ui"

// kindsFresh is how old what is known of the kinds may be.
const kindsFresh = 5 * time.Second

// served returns all kinds of the server, as they were a few seconds ago at most. What it says when it cannot be asked is
// kept as long.
func (c *connection) served() ([]past.Served, error) {
	c.mu.Lock()
	kinds, failed, asked := c.kinds, c.failed, c.asked
	c.mu.Unlock()
	if time.Since(asked) < kindsFresh {
		return kinds, failed
	}
	all, err := c.client.Kinds.All(!asked.IsZero())
	if err != nil && len(kinds) == 0 {
		err = c.why(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked, c.failed = time.Now(), err; err == nil {
		c.kinds = all
	}
	return c.kinds, err
}

// why is the reason for which no kind is known: the server may be no Kubernetes API at all.
func (c *connection) why(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), kindsFresh)
	defer cancel()
	var other *notKubernetesError
	if errors.As(checkVersion(ctx, c.rest, c.host), &other) {
		return other
	}
	return err
}

// foreign is the error of a server that is no Kubernetes API; nil if it is one, or does not answer. Only while no kind is
// known the server is asked: not each request for rows asks for all kinds.
func (c *connection) foreign() error {
	c.mu.Lock()
	known := len(c.kinds) > 0
	c.mu.Unlock()
	if known {
		return nil
	}
	var other *notKubernetesError
	if _, err := c.served(); errors.As(err, &other) {
		return other
	}
	return nil
}

// visit is a request of a visitor. One goroutine uses it.
type visit struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	conn *connection
	past *past.Client

	namespace string      // that is looked at; empty: all
	at        past.Moment // for which the page is
	atText    string
}

// enter lets a visitor in.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) (*visit, error) {
	key, config, err := s.door.enter(r)
	if err != nil {
		return nil, err
	}
	conn, err := s.connections.get(key, config)
	if err != nil {
		return nil, err
	}
	v := &visit{s: s, w: w, r: r, conn: conn, past: conn.client.Again()}
	if known := conn.remember(v); apierrors.IsUnauthorized(known.failed) {
		return nil, known.failed
	}
	if err := conn.foreign(); err != nil {
		return v, err
	}
	s.connections.keep(key, conn)
	v.namespace, v.atText = v.param("ns"), v.param("at")
	for _, name := range []string{v.namespace, r.PathValue("namespace"), r.PathValue("name")} {
		if why := content.IsPathSegmentName(name); len(why) > 0 { // it becomes a part of a path of the API
			v.namespace = ""
			return v, problem(http.StatusBadRequest, "%q is no name: it %s.", name, why[0])
		}
	}
	if v.atText == "" {
		return v, nil
	}
	v.at, err = past.ParseMoment("at", v.atText, time.Now())
	if err != nil {
		v.atText = ""
		var mistake *past.Mistake
		if errors.As(err, &mistake) && mistake.Future {
			return v, problem(http.StatusBadRequest, "%s is in the future.", v.param("at"))
		}
		return v, problem(http.StatusBadRequest, "%q is no moment. Write how long ago, such as 2h or 3d, a time such as 14:00 or 2006-01-02 15:04, or a resourceVersion.", v.param("at"))
	}
	return v, nil
}

// again is the visit for another goroutine.
func (v *visit) again() *visit {
	other := *v
	other.past = v.conn.client.Again()
	return &other
}

func (v *visit) ctx() context.Context { return v.r.Context() }

func (v *visit) param(name string) string { return v.r.URL.Query().Get(name) }

// link returns the address of a page below the base, for the namespace and the moment that are looked at. More are
// names and values of parameters; an empty value leaves one out.
func (v *visit) link(path string, more ...string) string {
	q := url.Values{}
	for name, value := range map[string]string{"ns": v.namespace, "at": v.atText} {
		if value != "" {
			q.Set(name, value)
		}
	}
	setParams(q, more)
	address := v.s.base + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	return address
}

// setParams sets parameters, given by names and values; an empty value removes one.
func setParams(q url.Values, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
}

// objectLink returns the address of an object's page.
func (v *visit) objectLink(resource, namespace, name, page string, more ...string) string {
	if namespace == "" {
		namespace = "-"
	}
	path := "objects/" + url.PathEscape(resource) + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	if page != "" {
		path += "/" + page
	}
	return v.link(path, more...)
}

// target returns the object that the path names. Its kind may be gone.
func (v *visit) target() (past.Target, error) {
	kind, err := v.past.History.FindPastKind(v.ctx(), v.r.PathValue("resource"))
	if err != nil {
		return past.Target{}, err
	}
	namespace := v.r.PathValue("namespace")
	if namespace == "-" {
		namespace = ""
	}
	return kind.In(namespace, v.r.PathValue("name")), nil
}

// get reads the API at a path into out.
func (v *visit) get(out any, params url.Values, path ...string) error {
	request := v.conn.rest.Get().AbsPath(path...)
	for name, values := range params {
		for _, value := range values {
			request = request.Param(name, value)
		}
	}
	return v.do(request, out)
}

// do sends a request, and reads the answer into out.
func (v *visit) do(request *clientrest.Request, out any) error {
	return decode(request.Do(v.ctx()), out)
}

// post sends an object to the API at a path, and reads the answer into out.
func (v *visit) post(in, out any, path ...string) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return v.do(v.conn.rest.Post().AbsPath(path...).SetHeader("Content-Type", "application/json").Body(body), out)
}

// json answers with a value.
func (v *visit) json(value any) error {
	_ = http.NewResponseController(v.w).SetWriteDeadline(time.Now().Add(slowest))
	v.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(v.w).Encode(value)
}

// decode reads an answer of the API into out.
func decode(result clientrest.Result, out any) error {
	if err := result.Error(); err != nil { // Raw does not read the Status
		return err
	}
	text, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}
