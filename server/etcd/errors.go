package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// toStatus returns the error for the client. Errors of rpctypes, and statuses, stay as they are.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, changelog.ErrCompacted):
		return rpctypes.ErrGRPCCompacted
	case errors.Is(err, sqlstore.ErrFuture):
		return rpctypes.ErrGRPCFutureRev
	case errors.Is(err, sqlstore.ErrTooLarge), errors.Is(err, changelog.ErrKey):
		return rpctypes.ErrGRPCRequestTooLarge
	case errors.Is(err, changelog.ErrFull):
		return rpctypes.ErrGRPCNoSpace
	case errors.Is(err, changelog.ErrClosed):
		return rpctypes.ErrGRPCStopped
	case errors.Is(err, context.Canceled):
		return status.FromContextError(context.Canceled).Err()
	case errors.Is(err, changelog.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
		// Clients do not repeat a write after this answer, because its outcome is unknown.
		return rpctypes.ErrGRPCTimeout
	case errors.Is(err, changelog.ErrUnavailable):
		return status.Error(codes.Unavailable, "etcdserver: "+err.Error())
	}
	return status.Error(codes.Unknown, err.Error())
}
