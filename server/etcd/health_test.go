package etcd

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
)

func TestHealth(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	client := healthpb.NewHealthClient(m.conn)
	r, err := client.Check(bounded(t), &healthpb.HealthCheckRequest{})
	if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("check: %v, %v", r, err)
	}
	_, err = client.Check(bounded(t), &healthpb.HealthCheckRequest{Service: "x"})
	wantCode(t, "check of another service", err, codes.NotFound)
	list, err := client.List(bounded(t), &healthpb.HealthListRequest{})
	if err != nil || len(list.Statuses) != 1 || list.Statuses[""].GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("list: %v, %v", list, err)
	}
	for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{
		"": healthpb.HealthCheckResponse_SERVING, "x": healthpb.HealthCheckResponse_SERVICE_UNKNOWN,
	} {
		stream, err := client.Watch(bounded(t), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.Status != want {
			t.Errorf("watch of %q: %v, %v", service, r, err)
		}
	}
}

// Reflection knows the services and what their messages look like.
func TestReflection(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	stream, err := reflectionpb.NewServerReflectionClient(m.conn).ServerReflectionInfo(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	var names []string
	list := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	for _, s := range list.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	for _, want := range []string{"etcdserverpb.Lease", "etcdserverpb.Maintenance", "etcdserverpb.Cluster", "etcdserverpb.Auth", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %q", want, names)
		}
		file := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: want}})
		if len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("no description of %s: %v", want, file.GetErrorResponse())
		}
	}
}
