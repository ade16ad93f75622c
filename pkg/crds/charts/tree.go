package charts

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// loadTree loads a chart from a folder of the repository, or from a package that lies in it.
func loadTree(tree fs.FS, dir string, r *Release) (*chart.Chart, error) {
	info, err := fs.Stat(tree, dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := fs.ReadFile(tree, dir)
		if err != nil {
			return nil, err
		}
		return load(data, r)
	}
	var files []*archive.BufferedFile
	err = fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files = append(files, &archive.BufferedFile{Name: strings.TrimPrefix(name, dir+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	for _, dependency := range c.Metadata.Dependencies {
		if !vendored(c, dependency.Name) {
			return nil, fmt.Errorf("%s: its dependency %s is not vendored in %s", dir, dependency.Name, path.Join(dir, "charts"))
		}
	}
	return withValuesFiles(c, r)
}

func vendored(c *chart.Chart, name string) bool {
	for _, d := range c.Dependencies() {
		if d.Name() == name {
			return true
		}
	}
	return false
}
