package main

import (
	"context"
	"path/filepath"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is a process that may not have started yet, or have ended.
type container struct {
	id, sandbox string
	logPath     string
	config      *cri.ContainerConfig

	state                      cri.ContainerState
	created, started, finished int64
	exitCode                   int32
	pid                        int
	ended                      chan struct{} // closed when the process has; nil before it starts
}

func (r *runtime) CreateContainer(_ context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &container{
		id: r.newID(), sandbox: req.PodSandboxId, config: req.Config, created: time.Now().UnixNano(),
		logPath: filepath.Join(req.SandboxConfig.LogDirectory, req.Config.LogPath),
	}
	r.containers[c.id] = c
	return &cri.CreateContainerResponse{ContainerId: c.id}, nil
}

func (r *runtime) StartContainer(_ context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[req.ContainerId]
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	if err := r.start(c); err != nil {
		return nil, err
	}
	return &cri.StartContainerResponse{}, nil
}

// start is called with r.mu held.
func (r *runtime) start(c *container) error {
	log, err := openLog(c.logPath)
	if err != nil {
		return err
	}
	cmd := command(c.config)
	cmd.Stdout, cmd.Stderr = log.stream("stdout"), log.stream("stderr")
	if err := cmd.Start(); err != nil {
		log.Close()
		return err
	}
	c.pid, c.started, c.state, c.ended = cmd.Process.Pid, time.Now().UnixNano(), cri.ContainerState_CONTAINER_RUNNING, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		log.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		c.finished, c.state, c.exitCode = time.Now().UnixNano(), cri.ContainerState_CONTAINER_EXITED, exitCode(cmd.ProcessState)
		close(c.ended)
	}()
	return nil
}

// stop asks the first process of a container to end, and ends all of them after the grace.
func (r *runtime) stop(c *container, grace time.Duration) {
	r.mu.Lock()
	pid, ended := c.pid, c.ended
	r.mu.Unlock()
	if ended == nil {
		return
	}
	if grace > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(grace):
		}
	}
	select {
	case <-ended: // the number may be another's by now
	default:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
}

func (r *runtime) StopContainer(_ context.Context, req *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	if c := r.container(req.ContainerId); c != nil {
		r.stop(c, time.Duration(req.Timeout)*time.Second)
	}
	return &cri.StopContainerResponse{}, nil
}

func (r *runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	if c := r.container(req.ContainerId); c != nil {
		r.stop(c, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, req.ContainerId)
	return &cri.RemoveContainerResponse{}, nil
}

func (r *runtime) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

func (r *runtime) container(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers[id]
}

func (r *runtime) containersOf(sandbox string) (of []*container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.sandbox == sandbox {
			of = append(of, c)
		}
	}
	return of
}

func (r *runtime) ListContainers(_ context.Context, req *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp := &cri.ListContainersResponse{}
	for _, c := range r.containers {
		f := req.Filter
		if f.GetId() != "" && f.Id != c.id || f.GetPodSandboxId() != "" && f.PodSandboxId != c.sandbox ||
			f.GetState() != nil && f.State.State != c.state || !selects(f.GetLabelSelector(), c.config.Labels) {
			continue
		}
		resp.Containers = append(resp.Containers, &cri.Container{
			Id: c.id, PodSandboxId: c.sandbox, Metadata: c.config.Metadata, Image: c.config.Image, ImageRef: c.config.Image.Image,
			ImageId: c.config.Image.Image, State: c.state, CreatedAt: c.created, Labels: c.config.Labels, Annotations: c.config.Annotations,
		})
	}
	return resp, nil
}

func (r *runtime) ContainerStatus(_ context.Context, req *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[req.ContainerId]
	if c == nil {
		return nil, notFound("container", req.ContainerId)
	}
	name, _ := r.named(c.config.Image.Image) // kubelets give the id
	s := &cri.ContainerStatus{
		Id: c.id, Metadata: c.config.Metadata, State: c.state, CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.finished,
		ExitCode: c.exitCode, Image: &cri.ImageSpec{Image: name}, ImageRef: c.config.Image.Image, ImageId: c.config.Image.Image,
		Labels: c.config.Labels, Annotations: c.config.Annotations, Mounts: c.config.Mounts, LogPath: c.logPath,
	}
	if c.state == cri.ContainerState_CONTAINER_EXITED {
		s.Reason = "Completed"
		if c.exitCode != 0 {
			s.Reason = "Error"
		}
	}
	return &cri.ContainerStatusResponse{Status: s}, nil
}

func (r *runtime) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}
