package crds

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is [Providers] with a cluster's word on the kinds that neither git nor the catalogue knows:
// what it serves, and who brought the CRDs behind it. It writes nothing. A cluster that does not let
// its CRDs be listed still says what it serves.
func List(ctx context.Context, clients Clients, opts Options) ([]Provider, *Served, error) {
	opts = opts.complete()
	served, err := discoverFor(ctx, clients.Discovery, opts.Graph.Tiers, opts.Poll)
	if err != nil {
		return nil, nil, err
	}
	// Only the metadata and names are of use, but one list of whole CRDs is one request.
	list, err := clients.APIExtensions.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	switch {
	case err == nil:
		served.AddOwners(list.Items)
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("listing the CRDs: %w", err)
	}
	return Providers(opts.Graph, opts.Catalogue, served, opts.Rendered), served, nil
}
