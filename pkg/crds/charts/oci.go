package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/standup-sh/standup/pkg/render"
)

// chartLayer is the media type under which Helm stores a chart in a registry.
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// reference is a chart in a registry: by digest, by tag, or by the highest tag that satisfies a
// constraint, in this order.
type reference struct {
	repository          string // oci://host/path
	digest, tag, semver string
	insecure            bool
}

// oci follows an OCIRepository.
func (f *fetcher) oci(ctx context.Context, source render.Object) ([]byte, error) {
	insecure, _, _ := unstructured.NestedBool(source.Object, "spec", "insecure")
	ref := reference{
		repository: field(source, "spec", "url"), insecure: insecure,
		digest: field(source, "spec", "ref", "digest"), tag: field(source, "spec", "ref", "tag"), semver: field(source, "spec", "ref", "semver"),
	}
	if ref.semver != "" {
		ref.tag = "" // Flux prefers the constraint
	}
	if ref.digest == "" && ref.tag == "" && ref.semver == "" {
		ref.tag = "latest" // Flux's default
	}
	return f.pull(ctx, ref)
}

// pull gets the chart's layer. A digest, and a version that is written out, name it for good and are
// cached; a tag may move.
func (f *fetcher) pull(ctx context.Context, ref reference) ([]byte, error) {
	repository, err := f.registry(ref)
	if err != nil {
		return nil, err
	}
	target := ref.digest
	if target == "" && ref.semver != "" {
		if target, err = f.tag(ctx, repository, ref.semver); err != nil {
			return nil, fmt.Errorf("%s: %w", ref.repository, err)
		}
	}
	if target == "" {
		target = ref.tag
	}
	key := ""
	if ref.digest != "" || ref.semver != "" {
		key = ref.repository + " " + target
	}
	if archive, ok := f.cached(key); ok {
		return archive, nil
	}
	archive, err := fetchLayer(ctx, repository, target)
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", ref.repository, target, err)
	}
	return archive, f.keep(key, archive)
}

func (f *fetcher) registry(ref reference) (*remote.Repository, error) {
	repository, err := remote.NewRepository(strings.TrimPrefix(ref.repository, "oci://"))
	if err != nil {
		return nil, fmt.Errorf("reading address %s: %w", ref.repository, err)
	}
	repository.PlainHTTP = ref.insecure || isLoopback(repository.Reference.Host())
	client := &auth.Client{Client: f.client, Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		client.Credential = credentials.Credential(store)
	}
	repository.Client = client
	return repository, nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// tag picks the highest tag that satisfies a constraint. A version that is written out needs no list.
// Registries have no "+" in tags: Helm writes it as "_".
func (f *fetcher) tag(ctx context.Context, repository *remote.Repository, constraint string) (string, error) {
	asTag := strings.ReplaceAll(constraint, "+", "_")
	if _, err := repository.Resolve(ctx, asTag); err == nil && !strings.ContainsAny(constraint, "*<>=~^ |") {
		return asTag, nil
	}
	var versions []string
	err := repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	best, err := highest(versions, constraint)
	return strings.ReplaceAll(best, "+", "_"), err
}

func fetchLayer(ctx context.Context, repository *remote.Repository, target string) ([]byte, error) {
	descriptor, reader, err := repository.FetchReference(ctx, target)
	if err != nil {
		return nil, err
	}
	data, err := readAll(reader, descriptor)
	if err != nil {
		return nil, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if len(manifest.Layers) == 0 {
		return nil, fmt.Errorf("the artifact has no layers")
	}
	layer := manifest.Layers[0]
	for _, l := range manifest.Layers {
		if l.MediaType == chartLayer {
			layer = l
		}
	}
	if layer.Size > limit {
		return nil, fmt.Errorf("larger than %d MiB", limit>>20)
	}
	blob, err := repository.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	return readAll(blob, layer)
}

// readAll reads content and holds it to its digest.
func readAll(reader io.ReadCloser, descriptor ocispec.Descriptor) ([]byte, error) {
	defer reader.Close() //nolint:errcheck // nothing was written
	return content.ReadAll(reader, descriptor)
}
