package render

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	kustypes "sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxExpanded is how many nodes a YAML document may have once its aliases are written out. Kustomize
// writes them out without a limit (DeAnchor in kyaml/yaml/rnode.go), so that a file of a few hundred
// bytes fills the memory. It is far more than the API server takes in one object.
const maxExpanded = 2_000_000

// ErrAliases is the reason of a *FileError that keeps a document from kustomize, which would not end.
var ErrAliases = errors.New("its aliases write out to more than two million nodes")

// aliased returns the top of what makes a document grow out of all proportion; nil if it does not.
func aliased(top *yaml.Node) *yaml.Node {
	e := expansion{sizes: map[*yaml.Node]int{}}
	if e.size(top) <= maxExpanded {
		return nil
	}
	if e.worst != nil {
		return e.worst
	}
	return top
}

// expansion counts nodes, those below an anchor once.
type expansion struct {
	sizes map[*yaml.Node]int
	worst *yaml.Node
}

// size stops counting above maxExpanded. An anchor that holds itself has no end.
func (e *expansion) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return e.anchor(n.Alias)
	}
	if n.Anchor != "" {
		return e.anchor(n)
	}
	return e.count(n)
}

func (e *expansion) anchor(n *yaml.Node) int {
	if size, ok := e.sizes[n]; ok {
		return size
	}
	e.sizes[n] = maxExpanded + 1
	e.sizes[n] = e.count(n)
	return e.sizes[n]
}

func (e *expansion) count(n *yaml.Node) int {
	total := 1
	for _, c := range n.Content {
		if total += e.size(c); total > maxExpanded {
			if e.worst == nil {
				e.worst = c
			}
			return maxExpanded + 1
		}
	}
	return total
}

// explodes reports whether a text has a document that kustomize must not be given.
func explodes(data []byte) bool {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return false
	}
	for _, part := range split(data) {
		var node yaml.Node
		if yaml.Unmarshal(part.text, &node) == nil && aliased(&node) != nil {
			return true
		}
	}
	return false
}

// inlineAliases refuses patches written in kustomization files, or in the Kustomization itself, that
// kustomize must not be given.
func (b *builder) inlineAliases(top *kustypes.Kustomization) error {
	for _, k := range append(slices.Clone(b.c.kustomizations), kustDir{dir: b.res.Dir, kus: top}) {
		for _, p := range slices.Concat(k.kus.Patches, k.kus.PatchesJson6902) {
			if explodes([]byte(p.Patch)) {
				return fmt.Errorf("a patch: %w", ErrAliases)
			}
		}
		for _, p := range k.kus.PatchesStrategicMerge {
			if explodes([]byte(p)) {
				return fmt.Errorf("a patch: %w", ErrAliases)
			}
		}
	}
	return nil
}

// errorLine is the 1-based line of text that a YAML parser's error is about: the one it names, that of the first
// byte that YAML does not allow, that of the alias or field at fault, or else the first, which the parser
// does not name; 0 if text is empty or the error names line 0.
func errorLine(err error, text []byte) int {
	if n := yamlLine(err); n > 0 {
		return n
	}
	for i, line := 0, 1; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < 0x20 && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return line
		case r == '\n':
			line++
		}
		i += size
	}
	if len(text) == 0 || lineInError.MatchString(err.Error()) {
		return 0
	}
	return max(1, aliasLine(text), fieldLine(err, text))
}

// aliasLine is the line of what makes a text grow out of all proportion; 0 if nothing does.
func aliasLine(text []byte) int {
	var node yaml.Node
	if bytes.IndexByte(text, '*') < 0 || yaml.Unmarshal(text, &node) != nil {
		return 0
	}
	if n := aliased(&node); n != nil {
		return n.Line
	}
	return 0
}

// fieldInError finds the field of a kustomization file in an error of the JSON decoder.
var fieldInError = regexp.MustCompile(`Go struct field \w+\.(\w+)`)

// fieldLine is the line of the top-level field that a JSON decoder's error names; 0 if it names none.
func fieldLine(err error, text []byte) int {
	m := fieldInError.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		if bytes.HasPrefix(l, []byte(m[1]+":")) {
			return line
		}
	}
	return 0
}

// writeOut puts what it stands for in the place of each alias, as DeAnchor of kyaml/yaml/rnode.go does,
// and reports whether it could. Kustomize's way copies every mapping with all that is in it, for the sake of keys
// that are merged; it is taken only where the text has such.
func writeOut(top *yaml.Node, text []byte) bool {
	if bytes.Contains(text, []byte("<<")) {
		return kyaml.NewRNode(top).DeAnchor() == nil
	}
	withoutAliases(top)
	return true
}

func withoutAliases(n *yaml.Node) *yaml.Node {
	n.Anchor = ""
	if n.Kind == yaml.AliasNode {
		return kyaml.CopyYNode(withoutAliases(n.Alias))
	}
	for i, c := range n.Content {
		n.Content[i] = withoutAliases(c)
	}
	return n
}
