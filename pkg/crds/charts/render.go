package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/standup-sh/standup/pkg/crds"
	"github.com/standup-sh/standup/pkg/render"
	"github.com/standup-sh/standup/pkg/repo"
	"github.com/standup-sh/standup/pkg/tiers"
)

// Options say which releases to look at and where charts may come from. Graph is required.
type Options struct {
	// Graph holds the releases, built with objects.
	Graph *tiers.Graph
	// Tree is the repository that the graph was read from, for charts that lie in it; may be nil.
	Tree *repo.Tree
	// Cache is the folder for fetched charts; none when empty.
	Cache string
	// Client makes the requests; http.DefaultClient when nil.
	Client *http.Client
	// Offline renders only charts that lie in the repository, and takes none from the cache either: the
	// result depends on git alone.
	Offline bool
	// KubeVersion is what charts are told; the release of [crds.KubernetesRelease] when empty.
	KubeVersion string
}

// Result is what the charts define.
type Result struct {
	// Rendered goes to [crds.Providers] and [crds.PlanOptions].
	Rendered *crds.Rendered
	// Releases are in tier order.
	Releases []Release
}

// Release is one release and the CRDs that its chart installs.
type Release struct {
	crds.Release
	// Version is the chart's version; empty when it could not be had.
	Version string
	// Definitions are the CRDs, File set to the path in the chart.
	Definitions []render.Object
	// Templated are those Definitions that are templates, by CRD name: Helm owns them. Those of the
	// crds folder it only creates.
	Templated map[string]bool
	// Err says why the chart could not be had or rendered.
	Err error
}

// Definitions lists the CRDs of all releases in the form of [crds.Options].Charts.
func (r *Result) Definitions() []crds.ChartDefinition {
	var all []crds.ChartDefinition
	for _, release := range r.Releases {
		for _, d := range release.Definitions {
			all = append(all, crds.ChartDefinition{
				Object: d, Tier: release.Tier, Templated: release.Templated[d.GetName()],
				Release: releaseName(release.Object), Namespace: releaseNamespace(release.Object),
			})
		}
	}
	return all
}

// Render renders the charts of all releases of a graph. Suspended releases are left out. The error
// is ctx's; everything else is a Release's.
func Render(ctx context.Context, opts Options) (*Result, error) {
	f := newFetcher(opts)
	result := &Result{Rendered: crds.NewRendered()}
	for _, r := range crds.Releases(opts.Graph) {
		if r.Suspended {
			continue
		}
		release := Release{Release: r, Templated: map[string]bool{}}
		release.Err = f.render(ctx, &release)
		if err := ctx.Err(); err != nil {
			return result, err
		}
		if release.Err == nil {
			result.Rendered.Add(r.Object, release.Definitions)
		}
		result.Releases = append(result.Releases, release)
	}
	return result, nil
}

func (f *fetcher) render(ctx context.Context, r *Release) error {
	c, err := f.chart(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: fetching its chart: %w", r.Object.ID(), err)
	}
	r.Version = c.Metadata.Version
	if err := f.define(c, r); err != nil {
		if r.FromSecrets {
			err = errors.New("the message may quote values from Secrets and is not shown")
		}
		return fmt.Errorf("%s: rendering chart %s %s: %w", r.Object.ID(), c.Name(), c.Metadata.Version, err)
	}
	return nil
}

// define renders a chart and keeps its CRDs. Values that are not in git may be required: then the
// chart's answer would not be the release's.
func (f *fetcher) define(c *chart.Chart, r *Release) error {
	values := common.Values(r.Values)
	if values == nil {
		values = common.Values{}
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return err
	}
	if !r.SkipFolder {
		for _, folder := range c.CRDObjects() {
			if err := r.add(folder.File.Data, folder.Filename, false); err != nil {
				return err
			}
		}
	}
	capabilities, err := f.capabilities()
	if err != nil {
		return err
	}
	options := common.ReleaseOptions{Name: releaseName(r.Object), Namespace: releaseNamespace(r.Object), Revision: 1, IsInstall: true}
	all, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, options, capabilities, true)
	if err != nil {
		return err
	}
	rendered, err := engine.Engine{}.Render(c, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		if err := r.add([]byte(rendered[name]), name, true); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetcher) capabilities() (*common.Capabilities, error) {
	version := f.opts.KubeVersion
	if version == "" {
		version = crds.KubernetesRelease
	}
	kube, err := common.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("reading Kubernetes version %q: %w", version, err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kube
	return capabilities, nil
}

// add keeps the CRDs of one rendered file.
func (r *Release) add(data []byte, file string, templated bool) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if u.GetKind() == "CustomResourceDefinition" && strings.HasPrefix(u.GetAPIVersion(), "apiextensions.k8s.io/") {
			r.Definitions = append(r.Definitions, render.Object{Unstructured: u, File: file})
			r.Templated[u.GetName()] = r.Templated[u.GetName()] || templated
		}
	}
}

// releaseName is what helm-controller calls the release (GetReleaseName in its API): releaseName, or
// the target namespace and the object's name. Names longer than Helm allows are shortened there;
// what a chart defines does not depend on that.
func releaseName(o render.Object) string {
	if name := field(o, "spec", "releaseName"); name != "" {
		return name
	}
	if target := field(o, "spec", "targetNamespace"); target != "" && o.GetKind() == "HelmRelease" {
		return target + "-" + o.GetName()
	}
	return o.GetName()
}

func releaseNamespace(o render.Object) string {
	if target := field(o, "spec", "targetNamespace"); target != "" {
		return target
	}
	return o.GetNamespace()
}

func field(o render.Object, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}

// load reads a packaged chart and lays spec.chart.spec.valuesFiles over its values, as
// source-controller does when it builds the HelmChart.
func load(archive []byte, r *Release) (*chart.Chart, error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	return withValuesFiles(c, r)
}

func withValuesFiles(c *chart.Chart, r *Release) (*chart.Chart, error) {
	names, _, _ := unstructured.NestedStringSlice(r.Object.Object, "spec", "chart", "spec", "valuesFiles")
	if len(names) == 0 {
		return c, nil
	}
	ignore, _, _ := unstructured.NestedBool(r.Object.Object, "spec", "chart", "spec", "ignoreMissingValuesFiles")
	values := map[string]any{}
	for _, name := range names {
		i := slices.IndexFunc(c.Raw, func(f *common.File) bool { return path.Clean(f.Name) == path.Clean(name) })
		if i < 0 && ignore {
			continue
		}
		if i < 0 {
			return nil, fmt.Errorf("the chart has no values file %s", name)
		}
		more, err := loader.LoadValues(bytes.NewReader(c.Raw[i].Data))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		values = loader.MergeMaps(values, more)
	}
	c.Values = values
	return c, nil
}
