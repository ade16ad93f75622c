package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// FileError is a file that cannot be read as what it should be.
type FileError struct {
	// File is the repository-relative path, Line the 1-based line; 0 when unknown.
	File string
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("reading %s:%d: %s", e.File, e.Line, e.Reason())
	}
	return fmt.Sprintf("reading %s: %s", e.File, e.Reason())
}

// Reason is what is wrong, without the parser's own idea of the place, which counts lines from the
// start of the document.
func (e *FileError) Reason() string { return parserPlace.ReplaceAllString(plain(e.Err), "") }

// Unwrap returns the parser's error.
func (e *FileError) Unwrap() error { return e.Err }

// ReferenceError is a kustomization file that names something the artifact does not hold.
type ReferenceError struct {
	// File is the kustomization file, Line where it names Ref; 0 when unknown.
	File string
	Line int
	// Ref is the reference as written.
	Ref string
	// Remote says that Ref is a URL, which was not fetched.
	Remote bool
	// Err says why Ref cannot be read; nil if it does not exist.
	Err error
}

func (e *ReferenceError) Error() string {
	if e.Remote {
		return fmt.Sprintf("reading %s: %s is remote and was not fetched", e.File, e.Ref)
	}
	if e.Err != nil {
		return fmt.Sprintf("reading %s: %s", e.File, plain(e.Err))
	}
	return fmt.Sprintf("reading %s: %s does not exist", e.File, e.Ref)
}

// Unwrap returns the reason, if there is one.
func (e *ReferenceError) Unwrap() error { return e.Err }

// PathError is a spec.path that names no folder of the source.
type PathError struct{ Dir string }

func (e *PathError) Error() string { return fmt.Sprintf("path %s does not exist", e.Dir) }

// BuildError is what kustomize itself found wrong.
type BuildError struct {
	// Dir is the folder that was built, File and Line the manifest at fault; empty when it cannot be
	// told.
	Dir, File string
	Line      int
	Err       error
}

func (e *BuildError) Error() string { return fmt.Sprintf("building %s: %s", e.Dir, plain(e.Err)) }

// Unwrap returns kustomize's error.
func (e *BuildError) Unwrap() error { return e.Err }

// panicError is a panic of kustomize, which some invalid input sets off.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("kustomize panicked: %v", e.value) }

// plain writes an error on one line and in terms of the repository.
func plain(err error) string {
	s := strings.ReplaceAll(err.Error(), mount+"/", "")
	return strings.Join(strings.Fields(s), " ")
}

var parserPlace = regexp.MustCompile(`(error converting YAML to JSON: )?yaml: (unmarshal errors: )?(line \d+: )?|^line \d+: `)

var lineInError = regexp.MustCompile(`\bline (\d+)`)

// yamlLine finds the line that a YAML parser's error names; 0 if it names none.
func yamlLine(err error) int {
	m := lineInError.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
