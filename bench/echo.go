package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/pki"
)

// echoServer answers every request with the same bytes, on a listener like plinth's. A watch has these bytes
// as an event for each PUT.
type echoServer struct {
	pki     *pki.PKI
	url     string
	http    *http.Server
	body    atomic.Pointer[[]byte]
	fan     *fan
	serving sync.WaitGroup
}

// Paths of the two handlers.
const (
	echoPath  = "/api/v1/namespaces/bench/configmaps" // a route of the router that plinth uses
	plainPath = "/plain"                              // net/http and nothing else
)

func startEcho() (*echoServer, error) {
	pki, err := pki.Open("", pki.ServingNames("127.0.0.1", nil))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &echoServer{fan: newFan(), pki: pki, url: "https://" + listener.Addr().String()}
	s.body.Store(&[]byte{})
	s.http = server.NewHTTP(s.handler(), pki.Serving)
	s.serving.Go(func() { _ = s.http.ServeTLS(listener, "", "") })
	return s, nil
}

func (s *echoServer) handler() http.Handler {
	e := echo.New()
	answer := func(c echo.Context) error {
		if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/json", *s.body.Load())
	}
	e.GET(echoPath+"/:name", answer)
	e.POST(echoPath, answer)
	e.PATCH(echoPath+"/:name", answer)
	e.PUT(echoPath+"/:name", func(c echo.Context) error {
		s.fan.put(*s.body.Load())
		return answer(c)
	})
	e.GET(echoPath, func(c echo.Context) error {
		if c.QueryParam("watch") == "" {
			return answer(c)
		}
		return s.fan.serve(c.Response(), c.Request())
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == plainPath {
			s.plain(w)
			return
		}
		e.ServeHTTP(w, r)
	})
}

// plain writes all bytes at once, which is the cheapest way.
func (s *echoServer) plain(w http.ResponseWriter) {
	body := *s.body.Load()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the client has left
}

func (s *echoServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}
