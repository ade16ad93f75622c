package repo

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"time"
)

// FS returns the tree as an fs.FS that also implements fs.ReadFileFS, fs.ReadDirFS and fs.StatFS.
func (t *Tree) FS() fs.FS { return treeFS{t} }

type treeFS struct{ t *Tree }

func (f treeFS) check(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

func (f treeFS) Open(name string) (fs.File, error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	n, err := f.t.find(name, true)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	if n.IsDir() {
		entries, err := f.ReadDir(name)
		return &dirFile{info: info{e: n.Entry, name: path.Base(name)}, entries: entries}, err
	}
	data, err := f.t.content(n)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &regFile{Reader: bytes.NewReader(data), info: info{e: n.Entry, name: path.Base(name), size: int64(len(data))}}, nil
}

func (f treeFS) ReadFile(name string) ([]byte, error) {
	if err := f.check("read", name); err != nil {
		return nil, err
	}
	data, err := f.t.ReadFile(name)
	return bytes.Clone(data), err
}

func (f treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.check("readdir", name); err != nil {
		return nil, err
	}
	entries, err := f.t.ReadDir(name)
	if err != nil {
		return nil, err
	}
	out := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		out = append(out, dirEntry{t: f.t, dir: name, e: e})
	}
	return out, nil
}

func (f treeFS) Stat(name string) (fs.FileInfo, error) {
	if err := f.check("stat", name); err != nil {
		return nil, err
	}
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	return file.Stat()
}

func cause(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// dirEntry is one line of a listing.
type dirEntry struct {
	t   *Tree
	dir string
	e   Entry
}

func (d dirEntry) Name() string      { return d.e.Name }
func (d dirEntry) IsDir() bool       { return d.e.IsDir() }
func (d dirEntry) Type() fs.FileMode { return d.e.Mode.Type() }
func (d dirEntry) Info() (fs.FileInfo, error) {
	n, err := d.t.find(path.Join(d.dir, d.e.Name), false)
	if err != nil {
		return nil, err
	}
	i := info{e: n.Entry, name: d.e.Name}
	if !n.IsDir() {
		data, err := d.t.content(n)
		if err != nil {
			return nil, err
		}
		i.size = int64(len(data))
	}
	return i, nil
}

// info is a FileInfo without times, which git does not keep.
type info struct {
	e    Entry
	name string
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.e.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.e.IsDir() {
		return i.e.Mode | 0o555
	}
	return i.e.Mode | 0o444
}

type regFile struct {
	*bytes.Reader
	info info
}

func (f *regFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *regFile) Close() error               { return nil }

type dirFile struct {
	info    info
	entries []fs.DirEntry
	at      int
}

func (d *dirFile) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *dirFile) Close() error               { return nil }
func (d *dirFile) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.entries[d.at:]
	if n <= 0 {
		d.at = len(d.entries)
		return left, nil
	}
	if len(left) == 0 {
		return nil, io.EOF
	}
	left = left[:min(n, len(left))]
	d.at += len(left)
	return left, nil
}
