package refused

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// AnswerTimeout is how long a server may be silent while a log is opened, by default.
const AnswerTimeout = 15 * time.Second

// Answer runs f, which asks the server something while a log is opened, and bounds how
// long the server may take to answer. After a timeout it is worth trying again.
func Answer(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	asked, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := f(asked)
	if err != nil && asked.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %v; the server hangs, or another session has locked plinth's tables", changelog.ErrUnavailable, wait)
	}
	return err
}

// Explain turns what stopped an Open into what its caller is told: a refusal says all, any
// other error is classified and says what was done.
func Explain(doing string, err error, classify func(error) error) error {
	if errors.Is(err, Err) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, classify(err))
}
