package cluster

import "context"

// node is the one that kwok manages; it fills in a status with room for any test.
const node = `
apiVersion: v1
kind: Node
metadata:
  name: node-0
  annotations: {node.alpha.kubernetes.io/ttl: "0", kwok.x-k8s.io/node: fake}
  labels:
    kubernetes.io/arch: amd64
    kubernetes.io/os: linux
    kubernetes.io/hostname: node-0
    type: kwok
`

// createNode gives the scheduler a place for pods.
func (c *Cluster) createNode(ctx context.Context) error { return c.Apply(ctx, node) }
