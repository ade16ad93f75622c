package wait

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Flags are what a controller's Deployment puts on its command line, by name without the dashes. A
// flag that is not there has the controller's default, which is not known here.
type Flags map[string]string

// Concurrent is --concurrent, the number of passes that run at once; 0 where it is not set.
func (f Flags) Concurrent() int {
	n, err := strconv.Atoi(f["concurrent"])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Gate reports whether --feature-gates switches a feature on. It is not for gates that are on by
// default.
func (f Flags) Gate(name string) bool {
	for pair := range strings.SplitSeq(f["feature-gates"], ",") {
		if gate, value, _ := strings.Cut(strings.TrimSpace(pair), "="); gate == name {
			on, err := strconv.ParseBool(value)
			return err == nil && on
		}
	}
	return false
}

// commandLine reads the flags of the container that Flux's manifests call manager, or of the first.
// The last of two equal flags counts, but for feature gates, which add up (fluxcd/pkg's
// runtime/features/features.go).
func commandLine(deployment *unstructured.Unstructured) Flags {
	if deployment == nil {
		return nil
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	var args []string
	for i, c := range containers {
		container, _ := c.(map[string]any)
		if name, _ := container["name"].(string); i == 0 || name == "manager" {
			args, _, _ = unstructured.NestedStringSlice(container, "args")
		}
	}
	if len(args) == 0 {
		return nil
	}
	flags := Flags{}
	for i, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		if !isFlag {
			continue
		}
		name, value, hasValue := strings.Cut(name, "=")
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		if before, twice := flags[name]; twice && name == "feature-gates" {
			value = value + "," + before
		}
		flags[name] = value
	}
	return flags
}
