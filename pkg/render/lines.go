package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// document is one object as a file writes it.
type document struct {
	Identity
	line int
	node *yaml.Node
}

// manifestFile is a file of objects, read and parsed once however many builds use it.
type manifestFile struct {
	once sync.Once
	docs []document
	err  error
	// simple says that the documents are the objects that kustomize would make of the file: no list
	// to take apart, no anchor that could not be resolved, no line ends to convert.
	simple bool
	// reserved says that the file writes what kustomize takes for its own notes.
	reserved bool

	full sync.Once
	// nodes are what kustomize's own reader makes of the file.
	nodes []*kyaml.RNode
	ferr  error
}

// manifestAt parses a file of the source's tree. Its error is what makes the file no YAML, a *FileError where the
// parser tells.
func (s *Source) manifestAt(file string) *manifestFile { return s.parsed(file, file, s.tree.ReadFile) }

// manifestFrom parses a file by the name that it really has, which another file of a composed tree may bear.
func (s *Source) manifestFrom(origin string) *manifestFile {
	if !s.tree.Composed() {
		return s.manifestAt(origin)
	}
	return s.parsed("from:"+origin, origin, s.tree.ReadOrigin)
}

func (s *Source) parsed(key, file string, read func(string) ([]byte, error)) *manifestFile {
	v, ok := s.manifests.Load(key)
	if !ok {
		v, _ = s.manifests.LoadOrStore(key, &manifestFile{})
	}
	m := v.(*manifestFile)
	m.once.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				m.err = &FileError{File: file, Err: &panicError{r}}
			}
		}()
		data, err := read(file)
		if err != nil {
			m.err = err
			return
		}
		m.simple = !bytes.ContainsRune(data, '\r') && !bytes.HasPrefix(data, []byte("\xef\xbb\xbf"))
		m.reserved = reserved(data)
		for _, part := range split(data) {
			m.add(file, part)
		}
	})
	return m
}

// add parses one document of the file.
func (m *manifestFile) add(file string, part chunk) {
	var node yaml.Node
	err := yaml.Unmarshal(part.text, &node)
	if err == nil && part.marker != "" && part.marker[0] != '#' {
		err = fmt.Errorf("line 0: invalid document separator: --- %s", part.marker)
	}
	if err != nil {
		if m.err == nil {
			m.err = &FileError{File: file, Line: errorLine(err, part.text) + part.line, Err: err}
		}
		return
	}
	if len(node.Content) != 1 || node.Content[0].Tag == "!!null" {
		return
	}
	top := node.Content[0]
	if bytes.IndexByte(part.text, '*') >= 0 {
		if n := aliased(top); n != nil {
			if m.err == nil {
				m.err = &FileError{File: file, Line: n.Line + part.line, Err: ErrAliases}
			}
			return
		}
	}
	if n := repeatedKey(top); n != nil && m.err == nil {
		m.err = &FileError{File: file, Line: n.Line + part.line, Err: fmt.Errorf("mapping key %q is given twice", n.Value)}
	}
	docs := identities(top, part.line)
	if bytes.IndexByte(part.text, '&') >= 0 && anchored(top) && !writeOut(top, part.text) {
		m.simple = false
	}
	if len(docs) != 1 || docs[0].node != top || strings.HasSuffix(docs[0].Kind, "List") {
		m.simple = false
	}
	m.docs = append(m.docs, docs...)
}

// resources are the objects as kustomize's own reader gives them.
func (s *Source) resources(file string) ([]*kyaml.RNode, error) {
	m := s.manifestAt(file)
	m.full.Do(func() {
		data, err := s.tree.ReadFile(file)
		if err != nil {
			m.ferr = err
			return
		}
		m.nodes, m.ferr = nodesOf(s.factory, data)
	})
	return m.nodes, m.ferr
}

// nodesOf parses as the controller's build does. Kustomize panics on some input.
func nodesOf(f *resource.Factory, data []byte) (nodes []*kyaml.RNode, err error) {
	if explodes(data) {
		return nil, ErrAliases
	}
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r}
		}
	}()
	return f.RNodesFromBytes(data)
}

// chunk is the text of one YAML document and how many lines come before it.
type chunk struct {
	text []byte
	line int
	// marker is what follows the --- before the document.
	marker string
}

// split cuts a stream at its document markers, so that one bad document does not hide the others.
func split(data []byte) []chunk {
	var out []chunk
	start, line, first := 0, 0, 0
	marker := ""
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data)
		} else {
			end += at + 1
		}
		if l := data[at:end]; bytes.HasPrefix(l, []byte("---")) && (len(bytes.TrimRight(l, "\r\n")) == 3 || l[3] == ' ') {
			if line == 0 && len(bytes.TrimSpace(l)) > 3 {
				// The first line may hold a document of its own.
				line++
				at = end
				continue
			}
			out = append(out, chunk{text: data[start:at], line: first, marker: marker})
			start, first, marker = end, line+1, string(bytes.TrimSpace(l[3:]))
		}
		line++
		at = end
	}
	return append(out, chunk{text: data[start:], line: first, marker: marker})
}

func identities(n *yaml.Node, before int) []document {
	d := document{line: n.Line + before, node: n}
	var list *yaml.Node
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if val.Kind == yaml.AliasNode {
			val = val.Alias
		}
		switch key.Value {
		case "apiVersion":
			d.APIVersion = written(val)
		case "kind":
			d.Kind = written(val)
		case "metadata":
			for j := 0; j+1 < len(val.Content) && val.Kind == yaml.MappingNode; j += 2 {
				switch val.Content[j].Value {
				case "name":
					d.Name = written(val.Content[j+1])
				case "namespace":
					d.Namespace = written(val.Content[j+1])
				}
			}
		case "items":
			list = val
		}
	}
	if list != nil && strings.HasSuffix(d.Kind, "List") && list.Kind == yaml.SequenceNode {
		return items(list, before)
	}
	return []document{d}
}

// written is the text of a field: that of its anchor, and none for a null.
func written(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

func items(list *yaml.Node, before int) []document {
	var out []document
	for _, item := range list.Content {
		out = append(out, identities(item, before)...)
	}
	return out
}

// line finds where a file, by the name it really has, writes the object that was rendered as kind, namespace and name. Renaming
// transformers keep the written name as a part of the new one.
func (s *Source) line(origin, apiVersion, kind, namespace, name string) int {
	best, line := 0, 0
	for _, d := range s.manifestFrom(origin).docs {
		if d.Kind != kind {
			continue
		}
		score := 1
		if d.APIVersion == apiVersion {
			score++
		}
		if d.Namespace == namespace {
			score++
		}
		switch {
		case d.Name == name:
			score += 8
		case d.Name != "" && strings.Contains(name, d.Name):
			score += 4
		}
		if score > best {
			best, line = score, d.line
		}
	}
	return line
}

// lineOf finds the line that holds a text in a file, by the name it really has; 0 if none does.
func (s *Source) lineOf(origin, text string) int {
	data, err := s.tree.ReadOrigin(origin)
	if err != nil {
		return 0
	}
	i := bytes.Index(data, []byte(text))
	if i < 0 {
		return 0
	}
	return 1 + bytes.Count(data[:i], []byte("\n"))
}

// repeatedKey returns a key that a mapping holds twice; nil if there is none. Kustomize reads such
// a manifest and fails when it writes the result.
func repeatedKey(n *yaml.Node) *yaml.Node {
	mapping := n.Kind == yaml.MappingNode
	for i, c := range n.Content {
		if mapping && i%2 == 0 {
			for j := 0; j < i; j += 2 {
				if b := n.Content[j]; c.Kind == yaml.ScalarNode && c.Value == b.Value && c.Tag == b.Tag && b.Kind == c.Kind && c.Tag != "!!merge" {
					return c
				}
			}
			continue
		}
		if len(c.Content) > 0 {
			if key := repeatedKey(c); key != nil {
				return key
			}
		}
	}
	return nil
}

// anchored reports whether a node has an anchor, which kustomize writes out when it reads.
func anchored(n *yaml.Node) bool {
	return n.Anchor != "" || slices.ContainsFunc(n.Content, anchored)
}
