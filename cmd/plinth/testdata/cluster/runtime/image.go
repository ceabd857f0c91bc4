package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Every image there could be can be pulled.

func imageID(name string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) }

func image(name string) *cri.Image {
	return &cri.Image{Id: imageID(name), RepoTags: []string{name}, Size: 1, Spec: &cri.ImageSpec{Image: name}}
}

func (r *runtime) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp := &cri.ListImagesResponse{}
	for name := range r.images {
		resp.Images = append(resp.Images, image(name))
	}
	return resp, nil
}

// named finds an image by its name or id. It is called with r.mu held.
func (r *runtime) named(ref string) (string, bool) {
	for name := range r.images {
		if ref == name || ref == imageID(name) {
			return name, true
		}
	}
	return "", false
}

func (r *runtime) ImageStatus(_ context.Context, req *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, found := r.named(req.Image.GetImage())
	if !found {
		return &cri.ImageStatusResponse{}, nil
	}
	return &cri.ImageStatusResponse{Image: image(name)}, nil
}

func (r *runtime) PullImage(_ context.Context, req *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[req.Image.Image] = true
	return &cri.PullImageResponse{ImageRef: imageID(req.Image.Image)}, nil
}

func (r *runtime) RemoveImage(_ context.Context, req *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name, found := r.named(req.Image.GetImage()); found {
		delete(r.images, name)
	}
	return &cri.RemoveImageResponse{}, nil
}

func (r *runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	usage := []*cri.FilesystemUsage{{
		Timestamp: time.Now().UnixNano(), FsId: &cri.FilesystemIdentifier{Mountpoint: "/var/lib"},
		UsedBytes: &cri.UInt64Value{}, InodesUsed: &cri.UInt64Value{},
	}}
	return &cri.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}
