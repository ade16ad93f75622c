package render

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// mergeSimply merges a simple patch into an object as ApplySmPatch of kustomize's
// api/resource/resource.go does, and reports whether it could; otherwise the object is as it was.
//
// Most patches are for many objects, and kustomize walks each of them whole, field by field, with its
// schema in hand. Here only the fields of the patch are touched. It is for kinds without a schema, and
// where neither nulls nor schemas in comments nor errors come in: the rest is left to kustomize.
func mergeSimply(res, patch *resource.Resource) bool {
	dest, src := res.YNode(), patch.YNode()
	if hasSchema(res) || res.GetName() == "" || !fits(dest, src, true) {
		return false
	}
	mergeMap(dest, src, rootFixed)
	return true
}

// hasSchema reports whether kustomize may know the fields of a kind: it knows those of Kubernetes itself.
func hasSchema(res *resource.Resource) bool {
	group := res.GetGvk().Group
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// isSimple reports whether a patch can be merged field by field.
func isSimple(patch *resource.Resource) bool {
	return !patch.NameChangeAllowed() && !patch.KindChangeAllowed() && simpleNode(patch.YNode(), true)
}

func simpleNode(n *kyaml.Node, root bool) bool {
	if carriesSchema(n) || n.Kind == kyaml.AliasNode || !root && isObject(n) {
		return false
	}
	if n.Kind == kyaml.MappingNode && !simpleKeys(n) {
		return false
	}
	for _, c := range n.Content {
		if !simpleNode(c, false) {
			return false
		}
	}
	return true
}

// manyFields is from how many on a mapping is left to kustomize: fields are looked for one by one here.
const manyFields = 1000

// simpleKeys reports whether the keys of a mapping say no more than the names of its fields, each once.
// Kustomize stumbles over an empty one.
func simpleKeys(n *kyaml.Node) bool {
	if len(n.Content) > 2*manyFields {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != kyaml.ScalarNode || k.Value == "" || k.Value == "<<" || strings.HasPrefix(k.Value, "$") || valueOf(n, k.Value) != n.Content[i+1] {
			return false
		}
	}
	return true
}

// carriesSchema reports whether a comment may be one that kustomize reads a field's schema from.
func carriesSchema(n *kyaml.Node) bool {
	return strings.Contains(n.HeadComment, "{") || strings.Contains(n.LineComment, "{") || strings.Contains(n.FootComment, "{")
}

// isObject tells a mapping that kustomize may look a schema up for.
func isObject(n *kyaml.Node) bool {
	return n.Kind == kyaml.MappingNode && valueOf(n, "apiVersion") != nil && valueOf(n, "kind") != nil
}

// fits reports whether a simple patch can be merged into a mapping: whatever both have is of one kind,
// and the mapping has no nulls, which kustomize keeps or drops by how they are written.
func fits(dest, src *kyaml.Node, root bool) bool {
	if carriesSchema(dest) || !root && isObject(dest) || !simpleKeys(dest) {
		return false
	}
	for i := 0; i < len(dest.Content); i += 2 {
		key, value := dest.Content[i], dest.Content[i+1]
		if carriesSchema(key) || carriesSchema(value) || isNull(value) {
			return false
		}
		var patched *kyaml.Node
		if src != nil {
			patched = valueOf(src, key.Value)
		}
		switch {
		case patched != nil && !isNull(patched) && patched.Kind != value.Kind:
			return false
		case value.Kind == kyaml.MappingNode:
			if patched != nil && isNull(patched) {
				patched = nil
			}
			if !fits(value, patched, false) {
				return false
			}
		case value.Kind != kyaml.ScalarNode && value.Kind != kyaml.SequenceNode:
			return false
		}
	}
	return true
}

// fixedFields names the fields of a mapping that no patch changes, with those of the mappings in it.
type fixedFields map[string]fixedFields

//nolint:gochecknoglobals // constant
var rootFixed = fixedFields{"apiVersion": nil, "kind": nil, "metadata": {"name": nil, "namespace": nil}}

// mergeMap sets the fields of a patch in a mapping: mappings are merged, everything else is replaced,
// null leaves a field out. The fields of the mapping that are not in the patch are quoted where
// kustomize's walk over them would.
func mergeMap(dest, src *kyaml.Node, fixed fixedFields) {
	for i := 0; i < len(dest.Content); i += 2 {
		if valueOf(src, dest.Content[i].Value) == nil {
			settle(dest.Content[i+1])
		}
	}
	if len(dest.Content) == 0 {
		dest.Style = src.Style
	}
	for _, i := range byName(src) {
		key, value := src.Content[i], src.Content[i+1]
		below, known := fixed[key.Value]
		old := valueOf(dest, key.Value)
		switch {
		case known && below == nil:
		case isNull(value):
			drop(dest, key.Value)
		case old == nil:
			value = settle(kyaml.CopyYNode(value))
			dest.Content = append(dest.Content, &kyaml.Node{Kind: kyaml.ScalarNode, Value: key.Value, Style: key.Style}, value)
		case value.Kind == kyaml.MappingNode:
			mergeMap(old, value, below)
		default:
			value = settle(kyaml.CopyYNode(value))
			value.Style = old.Style
			*old = *value
		}
	}
}

// byName lists where the fields of a mapping are, in the order in which kustomize sets them.
func byName(n *kyaml.Node) []int {
	var at []int
	for i := 0; i < len(n.Content); i += 2 {
		at = append(at, i)
	}
	slices.SortFunc(at, func(a, b int) int { return strings.Compare(n.Content[a].Value, n.Content[b].Value) })
	return at
}

// settle makes of the fields of a value what a walk of kustomize's does when it sets each anew
// (FieldSetter of kyaml/yaml/fns.go): nulls go, and texts are quoted that YAML 1.1 takes for something
// else. It returns the value.
func settle(n *kyaml.Node) *kyaml.Node {
	switch n.Kind {
	case kyaml.ScalarNode:
		if (n.Tag == kyaml.NodeTagString || n.Tag == kyaml.NodeTagEmpty) && n.Style == 0 && !isWord(n.Value) && kyaml.IsYaml1_1NonString(n) {
			n.Style = kyaml.DoubleQuotedStyle
		}
	case kyaml.MappingNode:
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if isNull(n.Content[i+1]) {
				n.Content = append(n.Content[:i], n.Content[i+2:]...)
				continue
			}
			settle(n.Content[i+1])
		}
	}
	return n
}

// isWord reports whether a plain scalar is a text to every version of YAML, as far as that can be told
// without a parser: it begins with a letter or as a path does, goes on with letters, digits and what
// joins them, and is none of the words that mean true, false or nothing.
func isWord(s string) bool {
	rest := strings.TrimPrefix(s, "./")
	if rest == "" {
		return false
	}
	for i, c := range []byte(rest) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '.' || c == '/' || c == '_')) {
			return false
		}
	}
	switch strings.ToLower(rest) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

func isNull(n *kyaml.Node) bool { return n.Tag == kyaml.NodeTagNull }

// valueOf is the value of a mapping's field, nil where it has none.
func valueOf(n *kyaml.Node, name string) *kyaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func drop(n *kyaml.Node, name string) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			n.Content = append(n.Content[:i], n.Content[i+2:]...)
			return
		}
	}
}
