package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/standup-sh/standup/pkg/render"
)

// limit is the size of a download beyond which something is wrong.
const limit = 100 << 20

// fetcher gets charts, each once.
type fetcher struct {
	opts    Options
	client  *http.Client
	indexes map[string]*index
	objects map[string]render.Object
}

func newFetcher(opts Options) *fetcher {
	f := &fetcher{opts: opts, client: opts.Client, indexes: map[string]*index{}, objects: map[string]render.Object{}}
	if f.client == nil {
		f.client = http.DefaultClient
	}
	for _, t := range opts.Graph.Tiers {
		for _, o := range t.Objects {
			f.objects[o.ID()] = o
		}
	}
	return f
}

// errOffline says that a chart was not fetched because that was not allowed.
var errOffline = errors.New("the network may not be used")

// NotInGitError says that the object which tells where a chart comes from is not in git.
type NotInGitError struct{ Object string }

func (e *NotInGitError) Error() string { return e.Object + " is not in git" }

// chart gets the chart of a release.
func (f *fetcher) chart(ctx context.Context, r *Release) (*chart.Chart, error) {
	if r.Object.GetKind() == "HelmChart" {
		return f.cattle(ctx, r)
	}
	if name := field(r.Object, "spec", "chartRef", "name"); name != "" {
		return f.byReference(ctx, r, name)
	}
	spec, _, _ := unstructured.NestedMap(r.Object.Object, "spec", "chart", "spec")
	return f.bySpec(ctx, r, spec)
}

func (f *fetcher) byReference(ctx context.Context, r *Release, name string) (*chart.Chart, error) {
	kind, namespace := field(r.Object, "spec", "chartRef", "kind"), field(r.Object, "spec", "chartRef", "namespace")
	source, err := f.source(kind, namespace, name, r.Object)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "OCIRepository":
		if f.opts.Offline {
			return nil, errOffline
		}
		archive, err := f.oci(ctx, source)
		if err != nil {
			return nil, err
		}
		return load(archive, r)
	case "HelmChart":
		spec, _, _ := unstructured.NestedMap(source.Object, "spec")
		return f.bySpec(ctx, r, spec)
	}
	return nil, fmt.Errorf("charts of a %s are not supported", kind)
}

// bySpec follows a HelmChart's spec: a name and version in a repository, or a path in a source.
func (f *fetcher) bySpec(ctx context.Context, r *Release, spec map[string]any) (*chart.Chart, error) {
	get := func(fields ...string) string { s, _, _ := unstructured.NestedString(spec, fields...); return s }
	kind, name := get("sourceRef", "kind"), get("sourceRef", "name")
	if kind == "GitRepository" {
		return f.inGit(r, get("chart"), kind, get("sourceRef", "namespace"), name)
	}
	if kind != "HelmRepository" {
		return nil, fmt.Errorf("charts of a %s are not supported", kind)
	}
	if f.opts.Offline {
		return nil, errOffline
	}
	source, err := f.source(kind, get("sourceRef", "namespace"), name, r.Object)
	if err != nil {
		return nil, err
	}
	address, version := field(source, "spec", "url"), get("version")
	insecure, _, _ := unstructured.NestedBool(source.Object, "spec", "insecure")
	if strings.HasPrefix(address, "oci://") {
		archive, err := f.pull(ctx, reference{repository: strings.TrimSuffix(address, "/") + "/" + get("chart"), semver: orAny(version), insecure: insecure})
		if err != nil {
			return nil, err
		}
		return load(archive, r)
	}
	return f.fromIndex(ctx, r, address, get("chart"), orAny(version))
}

func orAny(version string) string {
	if version == "" {
		return "*"
	}
	return version
}

func (f *fetcher) source(kind, namespace, name string, from render.Object) (render.Object, error) {
	if namespace == "" {
		namespace = from.GetNamespace()
	}
	id := kind + "/" + namespace + "/" + name
	source, ok := f.objects[id]
	if !ok {
		return render.Object{}, &NotInGitError{Object: id}
	}
	return source, nil
}

// cattle follows k3s's HelmChart, whose chart is a name in spec.repo, or an address.
func (f *fetcher) cattle(ctx context.Context, r *Release) (*chart.Chart, error) {
	name, repository, version := field(r.Object, "spec", "chart"), field(r.Object, "spec", "repo"), field(r.Object, "spec", "version")
	switch {
	case f.opts.Offline:
		return nil, errOffline
	case strings.HasPrefix(name, "oci://"):
		archive, err := f.pull(ctx, reference{repository: name, semver: orAny(version)})
		if err != nil {
			return nil, err
		}
		return load(archive, r)
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		archive, err := f.download(ctx, name, name)
		if err != nil {
			return nil, err
		}
		return load(archive, r)
	case repository == "":
		return nil, errors.New("spec.repo is empty")
	}
	return f.fromIndex(ctx, r, repository, name, orAny(version))
}

// index is what is needed of a chart repository's index.yaml.
type index struct {
	Entries map[string][]indexEntry `yaml:"entries"`
}

type indexEntry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
}

func (f *fetcher) fromIndex(ctx context.Context, r *Release, address, name, version string) (*chart.Chart, error) {
	exact := ""
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		exact = address + " " + name + " " + version
		if archive, ok := f.cached(exact); ok {
			return load(archive, r)
		}
	}
	entry, err := f.find(ctx, address, name, version)
	if err != nil {
		return nil, err
	}
	if len(entry.URLs) == 0 {
		return nil, fmt.Errorf("%s: the index has no address for %s %s", address, name, entry.Version)
	}
	location, err := resolve(address, entry.URLs[0])
	if err != nil {
		return nil, err
	}
	archive, err := f.download(ctx, location, exact)
	if err != nil {
		return nil, err
	}
	return load(archive, r)
}

// find picks the highest version of a chart that satisfies a constraint.
func (f *fetcher) find(ctx context.Context, address, name, version string) (indexEntry, error) {
	idx, ok := f.indexes[address]
	if !ok {
		data, err := f.get(ctx, strings.TrimSuffix(address, "/")+"/index.yaml")
		if err != nil {
			return indexEntry{}, err
		}
		idx = &index{}
		if err := yaml.Unmarshal(data, idx); err != nil {
			return indexEntry{}, fmt.Errorf("reading %s/index.yaml: %w", address, err)
		}
		f.indexes[address] = idx
	}
	versions := make([]string, 0, len(idx.Entries[name]))
	for _, e := range idx.Entries[name] {
		versions = append(versions, e.Version)
	}
	best, err := highest(versions, version)
	if err != nil {
		return indexEntry{}, fmt.Errorf("%s: chart %s: %w", address, name, err)
	}
	i := slices.IndexFunc(idx.Entries[name], func(e indexEntry) bool { return e.Version == best })
	return idx.Entries[name][i], nil
}

// highest picks the highest of the versions that a constraint allows, as Flux does
// (semver constraints of Masterminds/semver; what is no version is passed over).
func highest(versions []string, constraint string) (string, error) {
	if slices.Contains(versions, constraint) {
		return constraint, nil
	}
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", fmt.Errorf("reading version %q: %w", constraint, err)
	}
	var best *semver.Version
	for _, text := range versions {
		v, err := semver.NewVersion(text)
		if err == nil && c.Check(v) && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return "", fmt.Errorf("no version satisfies %q", constraint)
	}
	return best.Original(), nil
}

func resolve(base, reference string) (string, error) {
	b, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return "", fmt.Errorf("reading address %s: %w", base, err)
	}
	ref, err := url.Parse(reference)
	if err != nil {
		return "", fmt.Errorf("reading address %s: %w", reference, err)
	}
	return b.ResolveReference(ref).String(), nil
}

// download gets a chart and, where key names it for good, keeps it.
func (f *fetcher) download(ctx context.Context, location, key string) ([]byte, error) {
	if archive, ok := f.cached(key); ok {
		return archive, nil
	}
	archive, err := f.get(ctx, location)
	if err != nil {
		return nil, err
	}
	return archive, f.keep(key, archive)
}

func (f *fetcher) get(ctx context.Context, location string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", location, err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err // names the address itself
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching %s: %s", location, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", location, err)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("fetching %s: larger than %d MiB", location, limit>>20)
	}
	return data, nil
}

func (f *fetcher) cacheFile(key string) string {
	if f.opts.Cache == "" || key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.opts.Cache, hex.EncodeToString(sum[:])+".tgz")
}

func (f *fetcher) cached(key string) ([]byte, bool) {
	file := f.cacheFile(key)
	if file == "" {
		return nil, false
	}
	data, err := os.ReadFile(file)
	return data, err == nil
}

// keep writes a file that is whole or not there, also when several runs write it at once.
func (f *fetcher) keep(key string, data []byte) error {
	file := f.cacheFile(key)
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(f.opts.Cache, 0o755); err != nil {
		return fmt.Errorf("keeping a chart: %w", err)
	}
	temporary, err := os.CreateTemp(f.opts.Cache, "chart-*")
	if err != nil {
		return fmt.Errorf("keeping a chart: %w", err)
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keeping a chart: %w", err), os.Remove(temporary.Name()))
	}
	return nil
}

// DefaultCache is the folder for charts below the user's own cache folder.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(dir, "standup", "charts"), nil
}

// inGit loads a chart that lies in the repository itself.
func (f *fetcher) inGit(r *Release, dir, kind, namespace, name string) (*chart.Chart, error) {
	if namespace == "" {
		namespace = r.Object.GetNamespace()
	}
	id := kind + "/" + namespace + "/" + name
	if f.opts.Tree == nil || !f.isOwnSource(id) {
		return nil, &NotInGitError{Object: "the content of " + id}
	}
	return loadTree(f.opts.Tree.FS(), path.Clean(strings.TrimPrefix(dir, "./")), r)
}

// isOwnSource reports whether a source is the repository that the tiers come from.
func (f *fetcher) isOwnSource(id string) bool {
	for _, t := range f.opts.Graph.Tiers {
		if t.Opaque == "" && t.Source == id {
			return true
		}
	}
	return false
}
