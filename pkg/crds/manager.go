package crds

// FieldManager is the field manager of every object that this package applies. kustomize-controller
// takes over the fields of managers whose name begins with "kubectl" at its next pass (cleanup of
// field managers in its apply), so that nothing of standup stays on the object.
const FieldManager = "kubectl-standup"
