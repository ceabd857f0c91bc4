package admit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
)

// ReadConfig reads the configuration of plugins from a file, an AdmissionConfiguration of
// apiserver.config.k8s.io/v1; no file, no configuration.
// https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/#apiserver-config-k8s-io-v1-AdmissionConfiguration
func ReadConfig(file string) (admission.ConfigProvider, error) {
	if file == "" {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	config, err := admission.ReadAdmissionConfiguration(Names(), file, scheme)
	if err != nil {
		return nil, err
	}
	paths, err := pathsIn(file, scheme)
	return &files{config, paths}, err
}

// files looks at the files that a configuration names before upstream does, which ends the
// process over one that it cannot read.
type files struct {
	admission.ConfigProvider
	paths map[string]string // by name of the plugin
}

// ConfigFor implements admission.ConfigProvider.
func (f *files) ConfigFor(plugin string) (io.Reader, error) {
	if path := f.paths[plugin]; path != "" {
		if _, err := os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read its configuration: %w", err)
		}
	}
	return f.ConfigProvider.ConfigFor(plugin)
}

// pathsIn are the files that the one of an AdmissionConfiguration names, relative to where
// it is. The old forms of a configuration name none.
func pathsIn(file string, scheme *runtime.Scheme) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(), data)
	config, ok := obj.(*apiserver.AdmissionConfiguration)
	if err != nil || !ok {
		return nil, nil // ReadAdmissionConfiguration has judged it
	}
	paths := map[string]string{}
	for _, p := range config.Plugins {
		if p.Configuration != nil || p.Path == "" || paths[p.Name] != "" {
			continue
		}
		paths[p.Name] = p.Path
		if !filepath.IsAbs(p.Path) {
			paths[p.Name] = filepath.Join(filepath.Dir(file), p.Path)
		}
	}
	return paths, nil
}
