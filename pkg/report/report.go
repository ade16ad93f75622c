// Package report turns the values that the other packages compute into what people and machines
// read: text for a terminal, JSON and YAML for scripts, DOT and Mermaid for pictures, HTML for pages to
// look around in. A printer writes to the writer it is given and to nothing else; it decides nothing and
// changes nothing.
//
//	err := report.Graph(os.Stdout, graph, report.GraphOptions{Format: "name"})
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// FormatError says that a printer has no such output format.
type FormatError struct {
	Format string
	Known  []string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("output format %q is not one of %s", e.Format, strings.Join(e.Known, ", "))
}

// JSON writes v as one indented JSON document with a final newline. HTML characters stay as they
// are: the readers are people and jq, not browsers.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// JSONLine writes v as one line of JSON: one event of a stream.
func JSONLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// YAML writes v, by its JSON field names, as one YAML document.
func YAML(w io.Writer, v any) error {
	out, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}
