package render

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one object as a file writes it.
type document struct {
	apiVersion, kind, namespace, name string
	line                              int
}

// documents lists the objects of a file, the items of List kinds among them.
func (s *Source) documents(file string) []document {
	if d, ok := s.lines.Load(file); ok {
		return d.([]document)
	}
	data, err := s.tree.ReadOrigin(file)
	if err != nil {
		return nil
	}
	var docs []document
	for _, part := range split(data) {
		var node yaml.Node
		if yaml.Unmarshal(part.text, &node) == nil && len(node.Content) == 1 {
			docs = append(docs, identities(node.Content[0], part.line)...)
		}
	}
	s.lines.Store(file, docs)
	return docs
}

// chunk is the text of one YAML document and how many lines come before it.
type chunk struct {
	text []byte
	line int
}

// split cuts a stream at its document markers, so that one bad document does not hide the others.
func split(data []byte) []chunk {
	var out []chunk
	start, line, first := 0, 0, 0
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data)
		} else {
			end += at + 1
		}
		if l := data[at:end]; bytes.HasPrefix(l, []byte("---")) && (len(bytes.TrimRight(l, "\r\n")) == 3 || l[3] == ' ') {
			out = append(out, chunk{text: data[start:at], line: first})
			start, first = end, line+1
		}
		line++
		at = end
	}
	return append(out, chunk{text: data[start:], line: first})
}

func identities(n *yaml.Node, before int) []document {
	d := document{line: n.Line + before}
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if val.Kind == yaml.AliasNode {
			val = val.Alias
		}
		switch key.Value {
		case "apiVersion":
			d.apiVersion = val.Value
		case "kind":
			d.kind = val.Value
		case "metadata":
			for j := 0; j+1 < len(val.Content) && val.Kind == yaml.MappingNode; j += 2 {
				switch val.Content[j].Value {
				case "name":
					d.name = val.Content[j+1].Value
				case "namespace":
					d.namespace = val.Content[j+1].Value
				}
			}
		case "items":
			if strings.HasSuffix(d.kind, "List") && val.Kind == yaml.SequenceNode {
				return items(val, before)
			}
		}
	}
	return []document{d}
}

func items(list *yaml.Node, before int) []document {
	var out []document
	for _, item := range list.Content {
		out = append(out, identities(item, before)...)
	}
	return out
}

// line finds where file writes the object that was rendered as kind, namespace and name. Renaming
// transformers keep the written name as a part of the new one.
func (s *Source) line(file, apiVersion, kind, namespace, name string) int {
	best, line := 0, 0
	for _, d := range s.documents(file) {
		if d.kind != kind {
			continue
		}
		score := 1
		if d.apiVersion == apiVersion {
			score++
		}
		if d.namespace == namespace {
			score++
		}
		switch {
		case d.name == name:
			score += 8
		case d.name != "" && strings.Contains(name, d.name):
			score += 4
		}
		if score > best {
			best, line = score, d.line
		}
	}
	return line
}

// lineOf finds the line of file that holds text; 0 if none does.
func (s *Source) lineOf(file, text string) int {
	data, err := s.tree.ReadOrigin(file)
	if err != nil {
		return 0
	}
	i := bytes.Index(data, []byte(text))
	if i < 0 {
		return 0
	}
	return 1 + bytes.Count(data[:i], []byte("\n"))
}
