package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// errReadOnly is what every writing method of the file system returns.
var errReadOnly = errors.New("the artifact is read-only")

// view is a Source as kustomize sees it, with a few files replaced.
type view struct {
	src *Source
	// layer holds replaced files by repository path.
	layer map[string][]byte
	// disk serves the clones that kustomize makes of remote bases; nil unless they are allowed.
	disk filesys.FileSystem
}

var _ filesys.FileSystem = (*view)(nil)

// name turns a path of kustomize into a repository path.
func (v *view) name(p string) (string, error) {
	clean := path.Clean(p)
	if clean == mount {
		return v.src.dir, nil
	}
	rel, ok := strings.CutPrefix(clean, mount+"/")
	if !ok {
		return "", &fs.PathError{Op: "open", Path: p, Err: errors.New("outside the source's root")}
	}
	return path.Join(v.src.dir, rel), nil
}

// mounted turns a repository path into the path that kustomize sees.
func (s *Source) mounted(name string) string {
	rel, _ := s.rel(name)
	return path.Join(mount, rel)
}

func (v *view) onDisk(p string) bool {
	return v.disk != nil && strings.HasPrefix(p, filepath.Join(os.TempDir(), "kustomize-"))
}

func (v *view) Exists(p string) bool {
	if v.onDisk(p) {
		return v.disk.Exists(p)
	}
	n, err := v.name(p)
	if err != nil {
		return false
	}
	_, replaced := v.layer[n]
	return replaced || v.src.isFile(n) || v.src.isDir(n)
}

func (v *view) IsDir(p string) bool {
	if v.onDisk(p) {
		return v.disk.IsDir(p)
	}
	n, err := v.name(p)
	return err == nil && v.src.isDir(n)
}

func (v *view) ReadFile(p string) ([]byte, error) {
	if v.onDisk(p) {
		return v.disk.ReadFile(p)
	}
	n, err := v.name(p)
	if err != nil {
		return nil, err
	}
	if data, ok := v.layer[n]; ok {
		return data, nil
	}
	data, err := v.src.read(n)
	if err == nil && explodes(data) {
		return nil, &FileError{File: n, Err: ErrAliases}
	}
	return data, err
}

// read returns a file of the artifact, by its repository path.
func (s *Source) read(name string) ([]byte, error) {
	if s.ignored(name, false) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return s.tree.ReadFile(name)
}

func (v *view) ReadDir(p string) ([]string, error) {
	if v.onDisk(p) {
		return v.disk.ReadDir(p)
	}
	n, err := v.name(p)
	if err != nil {
		return nil, err
	}
	entries, err := v.src.tree.ReadDir(n)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !v.src.ignored(path.Join(n, e.Name), e.IsDir()) {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// CleanedAbs resolves links, as its contract asks: kustomize tells cycles by comparing what it returns.
func (v *view) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if v.onDisk(p) {
		return v.disk.CleanedAbs(p)
	}
	n, err := v.name(p)
	if err != nil {
		return "", "", err
	}
	real, err := v.src.tree.Resolve(n)
	if err != nil {
		if _, ok := v.layer[n]; !ok {
			return "", "", fmt.Errorf("'%s' doesn't exist", n)
		}
		real = n
	}
	if v.src.isDir(real) {
		return filesys.ConfirmedDir(v.src.mounted(real)), "", nil
	}
	return filesys.ConfirmedDir(v.src.mounted(path.Dir(real))), path.Base(real), nil
}

// Glob is used by kustomize for the fields that take patterns, none of which its v1 API keeps.
func (v *view) Glob(pattern string) ([]string, error) {
	dir := path.Dir(pattern)
	names, err := v.ReadDir(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // as filepath.Glob, which ignores what it cannot read
	}
	var out []string
	for _, n := range names {
		full := path.Join(dir, n)
		ok, err := path.Match(pattern, full)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, full)
		}
	}
	return out, nil
}

// Walk visits like filepath.Walk. Kustomize itself does not call it.
func (v *view) Walk(p string, walk filepath.WalkFunc) error {
	n, err := v.name(p)
	if err != nil {
		return err
	}
	return fs.WalkDir(v.src.tree.FS(), n, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return walk(v.src.mounted(name), nil, err)
		}
		info, err := d.Info()
		return walk(v.src.mounted(name), info, err)
	})
}

func (v *view) Open(string) (filesys.File, error) { return nil, errReadOnly }

func (v *view) Create(string) (filesys.File, error) { return nil, errReadOnly }

func (v *view) Mkdir(string) error { return errReadOnly }

func (v *view) MkdirAll(string) error { return errReadOnly }

func (v *view) WriteFile(string, []byte) error { return errReadOnly }

// RemoveAll is how kustomize drops its clones of remote bases.
func (v *view) RemoveAll(p string) error {
	if v.onDisk(p) {
		return v.disk.RemoveAll(p)
	}
	return errReadOnly
}
