package backups

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// patience is how long a client may take to read what it was sent before it is cut off: meanwhile the
// database keeps what the backup has yet to read.
const patience = time.Minute

var errBusy = apierrors.NewTooManyRequests("another backup is being made; try again when it is done", 10)

// Serve answers a request with a backup. What goes wrong when a part of it was sent ends the answer there,
// which its reader notices.
func (b *Backups) Serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return response.MethodNotAllowed()
	}
	history, err := historyOf(r)
	if err != nil {
		return err
	}
	select {
	case <-b.idle:
	default:
		return errBusy
	}
	defer func() { b.idle <- struct{}{} }()
	to := &answer{w: w, control: http.NewResponseController(w)}
	if _, err := b.take(r.Context(), to, history); err != nil {
		if !to.begun {
			return refusal(err)
		}
		b.config.Logger.Warn("a backup was broken off", "sent", to.sent, "err", err)
	}
	return nil
}

func historyOf(r *http.Request) (bool, error) {
	value := r.URL.Query().Get("history")
	if value == "" {
		return false, nil
	}
	history, err := strconv.ParseBool(value)
	if err != nil {
		return false, apierrors.NewBadRequest("history=" + strconv.Quote(value) + ": write history=true, or leave it out")
	}
	return history, nil
}

// refusal is the answer if there is no backup.
func refusal(err error) error {
	if errors.Is(err, changelog.ErrUnavailable) {
		return apierrors.NewServiceUnavailable(err.Error())
	}
	return apierrors.NewInternalError(err)
}

// answer is a response that begins with the first byte.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	sent    int64
}

func (a *answer) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/octet-stream")
		a.w.Header().Set("Cache-Control", "no-store")
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(patience)) // requests in process have none
	n, err := a.w.Write(b)
	a.sent += int64(n)
	return n, err
}
