package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user of an image.
const nobody = 65534

// imageFile is the path of an image, of all platforms: a tar archive of an OCI layout.
func (r *release) imageFile(program string) string {
	return filepath.Join(r.dist, fmt.Sprintf("%s_%s_image.tar", program, r.version))
}

// writeImages writes an image of each program that has one.
func (r *release) writeImages() error {
	for _, program := range programs {
		if program.Image == nil {
			continue
		}
		index, err := r.index(program)
		if err != nil {
			return err
		}
		dir := filepath.Join(r.work, "image", program.Name)
		path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
		if err != nil {
			return err
		}
		named := map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "ghcr.io/plinth-io/" + program.Name + ":" + r.version}
		if err := path.AppendIndex(index, layout.WithAnnotations(named)); err != nil {
			return err
		}
		if err := r.writeLayout(r.imageFile(program.Name), dir); err != nil {
			return err
		}
	}
	return nil
}

// index is an image of all platforms.
func (r *release) index(program program) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := r.image(program, p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, r.annotations(program)).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("the index of the image of %s cannot be annotated", program.Name)
	}
	return annotated, nil
}

// annotations are what registries show of an image.
func (r *release) annotations(program program) map[string]string {
	const about = "org.opencontainers.image."
	return map[string]string{
		about + "title": program.Name, about + "description": program.Short, about + "licenses": licence,
		about + "source": homepage, about + "url": homepage, about + "documentation": homepage + "#readme",
		about + "version": r.version, about + "revision": r.commit, about + "created": r.date.Format(time.RFC3339),
	}
}

// image is the image of one platform. It is made from nothing: a layer of what a program needs around it, and one of the
// program.
func (r *release) image(program program, p platform) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := func(text string) v1.History {
		return v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "make release", Comment: text}
	}
	surroundings, err := r.layer(around())
	if err != nil {
		return nil, err
	}
	itself, err := r.layer([]member{
		{name: "usr/local/bin/" + program.Name, mode: 0o755, from: r.program(program.Name, p)},
		{name: "usr/share/doc/plinth/LICENSE", mode: 0o644, from: filepath.Join(r.root, "LICENSE")},
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base,
		mutate.Addendum{Layer: surroundings, History: history("users, root certificates, /data, /tmp")},
		mutate.Addendum{Layer: itself, History: history(program.Name + " " + r.version)})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Author = "linux", p.Arch, v1.Time{Time: r.date}, product
	file.Config = v1.Config{
		User:         fmt.Sprintf("%d:%[1]d", nobody),
		Entrypoint:   []string{"/usr/local/bin/" + program.Name},
		Cmd:          program.Image,
		Env:          append([]string{"PATH=/usr/local/bin", "HOME=/data"}, program.ImageEnv...),
		WorkingDir:   "/data",
		ExposedPorts: map[string]struct{}{"6443/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		StopSignal:   "SIGTERM",
		Labels:       r.annotations(program),
	}
	return mutate.ConfigFile(image, file)
}

// around is what a program needs around it: the root certificates of Mozilla, as golang.org/x/crypto has them, for databases,
// webhooks and issuers with public certificates; a place for its data and one for temporary files; and the name of its user.
func around() []member {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return []member{
		{name: "data/", mode: 0o700, owner: nobody},
		{name: "tmp/", mode: 0o1777},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/data:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots.Bytes()},
	}
}

// layer makes a layer of members and the directories above them.
func (r *release) layer(members []member) (v1.Layer, error) {
	there := map[string]bool{}
	for _, m := range members {
		there[m.name] = true
	}
	for _, m := range members {
		for dir := filepath.Dir(strings.TrimSuffix(m.name, "/")); dir != "."; dir = filepath.Dir(dir) {
			if !there[dir+"/"] {
				members, there[dir+"/"] = append(members, member{name: dir + "/", mode: 0o755}), true
			}
		}
	}
	var b bytes.Buffer
	if err := r.tarTo(&b, members); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}

// writeLayout packs the directory of a layout.
func (r *release) writeLayout(file, dir string) error {
	var members []member
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if d.IsDir() {
			members = append(members, member{name: below + "/", mode: 0o755})
		} else {
			members = append(members, member{name: below, mode: 0o644, from: path})
		}
		return err
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := r.tarTo(&b, members); err != nil {
		return err
	}
	return writeFile(file, b.Bytes())
}

// push pushes the image that was made before to a registry, with the credentials of docker's configuration.
func (r *release) push(image string) error {
	reference, err := name.ParseReference(image)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "plinth-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := readImage(r.imageFile(programs[0].Name), dir)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(reference, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return err
	}
	digest, err := index.Digest()
	log.Printf("pushed %s@%s", reference.Context(), digest)
	return err
}

// readImage unpacks an image into dir.
func readImage(file, dir string) (v1.ImageIndex, error) {
	packed, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	if err := unpack(tar.NewReader(packed), dir); err != nil {
		return nil, err
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, not one", file, len(manifest.Manifests))
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

// unpack writes the files of an archive below dir, with their modes and owners.
func unpack(archive *tar.Reader, dir string) error {
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the archive has the name %s", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(archive); err == nil {
				err = writeFile(path, text)
			}
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(path, header.Uid, header.Gid)
		}
		if err == nil {
			err = os.Chmod(path, header.FileInfo().Mode())
		}
		if err != nil {
			return err
		}
	}
}
