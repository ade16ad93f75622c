// Package flux holds Flux's rules as pure functions over snapshots of objects: is this dependency
// ready, in which stage is this object applied, what does this condition mean. It does no I/O and
// knows nothing of git or of standup's commands. Every rule names the upstream file and function
// it mirrors; where they disagree, upstream is right.
package flux
