// Package diff compares two graphs of tiers: two revisions of one entry path, to see what merging a
// change does to a cluster, or two entry paths, to see whether two clusters have the same order.
//
// The heart of it are the moves: objects that another tier applies than before. Flux deletes such an
// object and creates it again unless the new owner comes first, and what hung on the object is lost
// in between. Nothing of this shows in a diff of the files.
//
//	d := diff.Compare(before, after)
//	for _, m := range d.Moves { … }
//
// Both graphs must have been loaded with their objects, or moves are not found. What a tier whose
// objects are not known holds is left out, and such tiers are listed.
package diff
