// Sbom writes what is in a Go program, as CycloneDX's JSON, to standard output: sbom PROGRAM
// VERSION. All that it says is in the program itself, so the same program gives the same text.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
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
	return cyclonedx.NewBOMEncoder(os.Stdout, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
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
