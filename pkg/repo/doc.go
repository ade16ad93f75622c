// Package repo gives a read-only view of a folder of manifests: the work tree on disk, or any
// revision out of git's object database, which never touches the work tree.
//
// A Tree's names are slash-separated and relative to its root; "." is the root. Symbolic links are
// followed inside the tree and refused where they lead out of it, so that nothing outside the
// tree is ever read. Each file is read at most once, and all methods may be called concurrently.
//
//	tree, err := repo.Open("/home/me/fleet", "v1.4.0")
//	if err != nil {
//		return err
//	}
//	manifest, err := tree.ReadFile("clusters/prod/infra.yaml")
//
// Limits: repositories that use the reftable or SHA-256 formats are not read, and submodules show
// as empty folders, as source-controller shows them unless told otherwise.
package repo
