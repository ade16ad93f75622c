// Package tiers reads the order of a Flux repository out of git: every Flux Kustomization below an
// entry path, found by rendering each as kustomize-controller would, and the edges between them.
//
//	tree, err := repo.Open(".", "")
//	if err != nil {
//		return err
//	}
//	graph, err := tiers.Load(ctx, tree, tiers.Options{Path: "clusters/prod"})
//	if err != nil {
//		return err
//	}
//	for _, t := range graph.Tiers {
//		fmt.Println(t.Wave, t.Key)
//	}
//
// What is wrong in git becomes a Problem with its file and line, and never hides the rest of the
// graph. What git cannot tell - another repository, a ConfigMap made by hand - is said to be unknown
// and never guessed.
package tiers
