package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOMs writes what is in each program, in CycloneDX's JSON. All that it says is in the program itself, so the same
// program gives the same text.
func (r *release) writeSBOMs() error {
	for _, p := range platforms {
		for _, program := range programs {
			file, err := os.Create(filepath.Join(r.dist, fmt.Sprintf("%s_%s_linux_%s.cdx.json", program.Name, r.version, p.Arch)))
			if err != nil {
				return err
			}
			bom, err := sbom(r.program(program.Name, p), r.version)
			if err == nil {
				err = cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
			}
			if closed := file.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func sbom(program, version string) (*cyclonedx.BOM, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	about := component(info.Main.Path, version, "")
	about.Type = cyclonedx.ComponentTypeApplication
	var depends []string
	components := []cyclonedx.Component{component("std", info.GoVersion, "")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(module.Path, module.Version, module.Sum))
	}
	for _, c := range components {
		depends = append(depends, c.BOMRef)
	}
	var settings []cyclonedx.Property
	for _, s := range info.Settings {
		settings = append(settings, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	about.Properties = &settings
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &about}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: about.BOMRef, Dependencies: &depends}}
	return bom, nil
}

// component is a module at a version, under its package URL. Go's checksum of it (h1:) is none
// that CycloneDX knows.
func component(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, Name: path, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}
