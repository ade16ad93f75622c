package crds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/standup-sh/standup/pkg/render"
)

// Bundle is a set of CRDs that the user keeps in files, such as [Export] writes.
type Bundle struct {
	// Definitions are sorted by name.
	Definitions []render.Object
}

// LoadBundle reads all .yaml, .yml and .json files of a folder and below. Everything in them must be
// a CustomResourceDefinition, and each may be there once; what is wrong is reported with file and
// line, all at once, as *BundleError joined.
func LoadBundle(tree fs.FS) (*Bundle, error) {
	b := &Bundle{}
	var errs []error
	seen := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		definitions, fileErrs := readDefinitions(name, data, seen)
		b.Definitions = append(b.Definitions, definitions...)
		errs = append(errs, fileErrs...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if len(b.Definitions) == 0 {
		return nil, &BundleError{File: ".", Message: "there is no CustomResourceDefinition in it"}
	}
	slices.SortFunc(b.Definitions, func(a, c render.Object) int { return strings.Compare(a.GetName(), c.GetName()) })
	return b, nil
}

// BundleError is one thing that is wrong with the files of a bundle.
type BundleError struct {
	File    string
	Line    int
	Message string
}

func (e *BundleError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("reading the bundle: %s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("reading the bundle: %s:%d: %s", e.File, e.Line, e.Message)
}

func readDefinitions(file string, data []byte, seen map[string]string) ([]render.Object, []error) {
	var definitions []render.Object
	var errs []error
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return definitions, errs
		}
		if err != nil {
			return definitions, append(errs, &BundleError{File: file, Message: strings.TrimPrefix(err.Error(), "yaml: ")})
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		o, err := definitionAt(file, node.Content[0])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first, ok := seen[o.GetName()]; ok {
			errs = append(errs, &BundleError{File: file, Line: o.Line, Message: fmt.Sprintf("%s is there twice, first in %s", o.GetName(), first)})
			continue
		}
		seen[o.GetName()] = file
		definitions = append(definitions, o)
	}
}

// definitionAt reads one CRD and holds it to what the API server asks of its shape.
func definitionAt(file string, node *yaml.Node) (render.Object, error) {
	fail := func(format string, args ...any) error {
		return &BundleError{File: file, Line: node.Line, Message: fmt.Sprintf(format, args...)}
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return render.Object{}, fail("%v", err)
	}
	u := &unstructured.Unstructured{}
	if err := decodeObject(text, u); err != nil {
		return render.Object{}, fail("%v", err)
	}
	o := render.Object{Unstructured: u, File: file, Line: node.Line}
	if !isCRD(o) {
		return o, fail("%s of %s is not a CustomResourceDefinition", u.GetKind(), u.GetAPIVersion())
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &crd, true); err != nil {
		return o, fail("%s: %v", u.GetName(), err)
	}
	if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != want {
		return o, fail("%s: its name must be %s", crd.Name, want)
	}
	if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage }) {
		return o, fail("%s: no version is stored", crd.Name)
	}
	return o, nil
}

// RefusedBundleError says that CRDs of a bundle were left out, because the operator that would make
// them does not work while they exist, and that their kinds are still missing.
type RefusedBundleError struct {
	Operator string
	CRDs     []string
	Link     string
}

func (e *RefusedBundleError) Error() string {
	return fmt.Sprintf("the bundle's %s: not applied: %s does not deploy while they exist and it has not made them", strings.Join(e.CRDs, ", "), e.Operator)
}

// refuser finds the operator that would not stand a CRD made by others: one that the catalogue says
// refuses, and that does not know this CRD by its labels.
func (c *Catalogue) refuser(o render.Object, triggers []render.Object) *Operator {
	kind, _ := definition(o)
	var crd apiextensionsv1.CustomResourceDefinition
	crd.Labels = o.GetLabels()
	for _, operator := range c.Operators {
		if operator.Existing == Refuses && operator.mayCreate(kind.GroupKind, triggers) && !operator.takesForItsOwn(&crd) {
			return operator
		}
	}
	return nil
}

// mayCreate reports whether an operator creates a kind: by name, or because one of the triggers says
// so.
func (o *Operator) mayCreate(gk schema.GroupKind, triggers []render.Object) bool {
	none := render.Object{Unstructured: &unstructured.Unstructured{}}
	for _, trigger := range append([]render.Object{none}, triggers...) {
		if trigger.Object != nil && !o.Trigger.matches(trigger) {
			continue
		}
		for _, creation := range o.Creates {
			for _, kind := range creation.created(trigger) {
				if kind.covers(gk) {
					return true
				}
			}
		}
	}
	return false
}
