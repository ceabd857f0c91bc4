package admission

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
)

// ReadConfig reads the configuration of plugins from a file, an AdmissionConfiguration of
// apiserver.config.k8s.io/v1. It returns nil if file is empty.
// https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/#apiserver-config-k8s-io-v1-AdmissionConfiguration
func ReadConfig(file string) (apiadmission.ConfigProvider, error) {
	if file == "" {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	config, err := apiadmission.ReadAdmissionConfiguration(Names(), file, scheme)
	if err != nil {
		return nil, err
	}
	paths, err := pathsIn(file, scheme)
	return &files{config, paths}, err
}

// files reads the files of a configuration before upstream does, because upstream ends the process if it cannot read
// one.
type files struct {
	apiadmission.ConfigProvider
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

// pathsIn returns the files that an AdmissionConfiguration names, by plugin. Relative paths
// are relative to the AdmissionConfiguration. Its old forms name no files.
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
