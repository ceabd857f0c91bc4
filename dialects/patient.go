package dialects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// attemptWait bounds one attempt to open a database that does not answer.
const attemptWait = 15 * time.Second

// ErrGaveUp is wrapped by the error of OpenWithin that says that the time is over.
var ErrGaveUp = errors.New("gave up")

// OpenWithin is Open for a database that may not be there yet, for example because both are started
// together: it tries until timeout is over, and once more then. waits is called before each pause with
// the error and the time at which the wait ends. With a timeout that is not above 0 it tries once.
func OpenWithin(ctx context.Context, dsn string, o Options, timeout time.Duration, waits func(err error, end time.Time)) (changelog.Log, error) {
	end := time.Now().Add(timeout)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		left := time.Until(end)
		if timeout > 0 {
			o.Wait = max(time.Second, min(left, attemptWait))
		}
		log, err := Open(ctx, dsn, o)
		if !errors.Is(err, changelog.ErrUnavailable) || ctx.Err() != nil {
			return log, err
		}
		if timeout <= 0 {
			return nil, err
		}
		if left <= 0 { // that was the last attempt
			return nil, fmt.Errorf("%w; %w after %v", err, ErrGaveUp, timeout)
		}
		waits(err, end)
		_ = sleep.For(ctx, min(pause, time.Until(end)))
	}
}
