package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// healthEvery is the pause between two checks for a watch of the health service.
const healthEvery = time.Second

// healthService is gRPC's health service. It knows only the server as a whole, which has the empty name.
type healthService struct {
	healthpb.UnimplementedHealthServer
	s *Server
}

// usable returns why the database cannot be used now. A database that accepts only deletes can be used.
func (s *Server) usable() error {
	if err := s.store.Healthy(); !errors.Is(err, changelog.ErrFull) {
		return err
	}
	return nil
}

func (h healthService) status() healthpb.HealthCheckResponse_ServingStatus {
	if h.s.usable() != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}

// Check answers whether the database can be used.
func (h healthService) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if r.Service != "" {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &healthpb.HealthCheckResponse{Status: h.status()}, nil
}

// List answers for the server as a whole whether the database can be used.
func (h healthService) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{"": {Status: h.status()}}}, nil
}

// Watch sends the status now and after each change.
func (h healthService) Watch(r *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		now := healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		if r.Service == "" {
			now = h.status()
		}
		if now != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		if sleep.For(stream.Context(), healthEvery) != nil {
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}
