package etcdtest_test

import (
	"io"
	"os"

	"google.golang.org/grpc/grpclog"
)

// gRPC warns of each attempt to reach an etcd that is not up yet, and etcd's client of each error.
func init() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
	os.Setenv("ETCD_CLIENT_DEBUG", "fatal")
}
