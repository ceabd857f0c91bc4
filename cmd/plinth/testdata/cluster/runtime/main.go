// Command runtime is a container runtime for the kubelets of tests. A container is a process
// of the machine, in a mount namespace of its own that has the container's volumes. There are
// no images: a container runs the command of its specification, with the machine's files. It
// has the machine's network too; the addresses of pods are made up.
//
// It implements the part of the Container Runtime Interface that kubelets need:
// https://kubernetes.io/docs/concepts/architecture/cri/
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: runtime SOCKET")
	}
	log.Fatal(serve(os.Args[1]))
}

func serve(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	r := &runtime{sandboxes: map[string]*sandbox{}, containers: map[string]*container{}, images: map[string]bool{}}
	if err := r.serveStreams(); err != nil {
		return fmt.Errorf("serve streams: %w", err)
	}
	s := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(s, r)
	cri.RegisterImageServiceServer(s, r)
	return s.Serve(l)
}

// runtime is both services of the interface.
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer
	streams streaming.Server

	mu         sync.Mutex // guards all below, and what the maps point at
	made       int        // sandboxes and containers, ever
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]bool // by name: those that were pulled
}

// serveStreams listens for exec and port-forward, which do not go by gRPC. The kubelet asks
// for a URL for each and connects its own client to it.
func (r *runtime) serveStreams() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: l.Addr().String()}
	if r.streams, err = streaming.NewServer(config, streams{r}); err != nil {
		return err
	}
	go func() { log.Fatal(http.Serve(l, r.streams)) }()
	return nil
}

// newID is called with r.mu held.
func (r *runtime) newID() string {
	r.made++
	return fmt.Sprintf("%064x", r.made)
}

func notFound(what, id string) error {
	return status.Errorf(codes.NotFound, "there is no %s %s", what, id)
}

func (r *runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "process", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

func (r *runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

func (r *runtime) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}
