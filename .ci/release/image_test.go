package main

import (
	"archive/tar"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImages reads each image, starts that of each platform as its user, and pushes it to a registry.
func TestImages(t *testing.T) {
	r := made(t)
	for _, program := range programs {
		if program.Image == nil {
			continue
		}
		index, err := readImage(r.imageFile(program.Name), t.TempDir())
		must(t, err)
		must(t, validate.Index(index))
		manifest, err := index.IndexManifest()
		must(t, err)
		if len(manifest.Manifests) != len(platforms) {
			t.Fatalf("the image of %s has %d platforms", program.Name, len(manifest.Manifests))
		}
		for _, p := range platforms {
			t.Run(program.Name+"/"+p.Arch, func(t *testing.T) {
				at := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == p.Arch })
				image, err := index.Image(manifest.Manifests[at].Digest)
				must(t, err)
				startImage(t, image, program, p)
			})
		}
		t.Run(program.Name+"/pushed", func(t *testing.T) { pushed(t, r, index) })
	}
}

// startImage starts an image as a runtime does: with its files as the root, as its user, with its arguments.
func startImage(t *testing.T, image v1.Image, program program, p platform) {
	file, err := image.ConfigFile()
	must(t, err)
	if file.OS != "linux" || file.Architecture != p.Arch || file.Config.User != "65534:65534" {
		t.Errorf("the image is for %s/%s and the user %s", file.OS, file.Architecture, file.Config.User)
	}
	size, err := image.Size()
	must(t, err)
	layers, err := image.Layers()
	must(t, err)
	for _, layer := range layers {
		compressed, err := layer.Size()
		must(t, err)
		size += compressed
	}
	t.Logf("the image of %s has %.1f MB", p.Arch, float64(size)/1e6)
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	flat := mutate.Extract(image)
	defer flat.Close()
	must(t, unpack(tar.NewReader(flat), root))
	in := inside{root: root, user: "65534:65534"}.emulated(t, p)
	args := slices.Concat(file.Config.Entrypoint, file.Config.Cmd)
	at := slices.Index(file.Config.Env, "PLINTH_LISTEN=0.0.0.0:6443")
	if at < 0 || !strings.HasSuffix(args[0], program.Name) {
		t.Fatalf("the image runs %v with %v", args, file.Config.Env)
	}
	in.env = slices.Clone(file.Config.Env)
	in.env[at] = "PLINTH_LISTEN=127.0.0.1:0" // a test opens nothing to the network
	in.serves(t, "data", args...)
	if info, err := os.Stat(filepath.Join(root, "data/plinth.db")); err != nil || info.Size() == 0 {
		t.Errorf("the database is not in /data: %v", err)
	}
}

// pushed pushes the image to a registry as the workflow does, and pulls it for each platform.
func pushed(t *testing.T, r *release, index v1.ImageIndex) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	image := strings.TrimPrefix(server.URL, "http://") + "/plinth:" + r.version
	must(t, r.push(image))
	reference, err := name.ParseReference(image)
	must(t, err)
	want, err := index.Digest()
	must(t, err)
	for _, p := range platforms {
		found, err := remote.Get(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: p.Arch}))
		must(t, err)
		pulled, err := found.Image()
		must(t, err)
		file, err := pulled.ConfigFile()
		must(t, err)
		if found.Digest != want || file.Architecture != p.Arch {
			t.Errorf("pulled %v for %s, want %v: %v", found.Digest, file.Architecture, want, fmt.Sprint(p.Arch))
		}
	}
}
