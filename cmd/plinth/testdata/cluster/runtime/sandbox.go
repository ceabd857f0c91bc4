package main

import (
	"context"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is what the containers of a pod have in common: here an address and no more.
type sandbox struct {
	id, ip  string // no address if the pod has the node's
	config  *cri.PodSandboxConfig
	state   cri.PodSandboxState
	created int64
}

func (s *sandbox) network() *cri.NamespaceOption {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func (r *runtime) RunPodSandbox(_ context.Context, req *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sandbox{id: r.newID(), config: req.Config, created: time.Now().UnixNano()}
	if s.network().GetNetwork() != cri.NamespaceMode_NODE {
		s.ip = fmt.Sprintf("10.88.%d.%d", r.made/250, r.made%250+1)
	}
	r.sandboxes[s.id] = s
	return &cri.RunPodSandboxResponse{PodSandboxId: s.id}, nil
}

// StopPodSandbox ends the containers without grace: the kubelet has stopped them before.
func (r *runtime) StopPodSandbox(_ context.Context, req *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	for _, c := range r.containersOf(req.PodSandboxId) {
		r.stop(c, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[req.PodSandboxId]; s != nil {
		s.state = cri.PodSandboxState_SANDBOX_NOTREADY
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *runtime) RemovePodSandbox(ctx context.Context, req *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	if _, err := r.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: req.PodSandboxId}); err != nil {
		return nil, err
	}
	of := r.containersOf(req.PodSandboxId)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range of {
		delete(r.containers, c.id)
	}
	delete(r.sandboxes, req.PodSandboxId)
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *runtime) PodSandboxStatus(_ context.Context, req *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[req.PodSandboxId]
	if s == nil {
		return nil, notFound("sandbox", req.PodSandboxId)
	}
	return &cri.PodSandboxStatusResponse{Status: &cri.PodSandboxStatus{
		Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.created,
		Labels: s.config.Labels, Annotations: s.config.Annotations,
		Network: &cri.PodSandboxNetworkStatus{Ip: s.ip},
		Linux:   &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: s.network()}},
	}}, nil
}

func (r *runtime) ListPodSandbox(_ context.Context, req *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp := &cri.ListPodSandboxResponse{}
	for _, s := range r.sandboxes {
		f := req.Filter
		if f.GetId() != "" && f.Id != s.id || f.GetState() != nil && f.State.State != s.state || !selects(f.GetLabelSelector(), s.config.Labels) {
			continue
		}
		resp.Items = append(resp.Items, &cri.PodSandbox{
			Id: s.id, Metadata: s.config.Metadata, State: s.state, CreatedAt: s.created,
			Labels: s.config.Labels, Annotations: s.config.Annotations,
		})
	}
	return resp, nil
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}
