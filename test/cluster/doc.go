// Package cluster runs a real Kubernetes control plane with Flux's real
// controllers on the loopback interface, for tests and demonstrations: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kwok (one node whose
// pods become Ready without a kubelet), source-controller, kustomize-controller
// and a git server that speaks smart HTTP.
//
//	c := cluster.New(t, cluster.Options{Components: cluster.Flux()})
//	sha, err := c.Git.Push(ctx, "fleet", os.DirFS("testdata/fleet"), "first")
//	err = c.Sync(ctx, cluster.Sync{Repo: "fleet", Path: "clusters/prod"})
//
// Binaries come from package build. A cluster's whole state is one temporary
// directory, its ports are picked free on 127.0.0.1, and its processes end with
// the process that called Start, however that ends (package internal/proc).
//
// Limits. Flux's controllers run as processes, not as pods: the namespace
// flux-system holds no Deployments of theirs, and their Leases are kept for them,
// because outside of a pod they cannot elect a leader. helm-controller and
// notification-controller are absent; of helm-controller there is the CRD alone.
// Components run as cluster administrators, under the names of their service
// accounts. Nothing restarts a component that ends by itself.
package cluster
