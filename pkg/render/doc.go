// Package render builds one Flux Kustomization into its objects the way kustomize-controller
// would: the artifact without what source-controller leaves out, a kustomization.yaml generated or
// extended with the spec's patches, components, images, namespace and affixes, kustomize's own
// build, variable substitution, common metadata. Nothing is written and nothing is fetched.
//
//	src, err := render.NewSource(tree, ".", "")
//	if err != nil {
//		return err
//	}
//	res, err := src.Build(kustomization, render.Options{Lookup: configMaps})
//
// A build that would fail in the cluster returns its error and, where that is possible, the
// objects of all that can be built without the part at fault, so that one broken file never hides the rest.
//
// Limits: SOPS-encrypted objects and files stay as they are in git, and charts that kustomize
// would inflate are an error, as they are in the controller.
package render
