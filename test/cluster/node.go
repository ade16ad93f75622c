package cluster

import "context"

// node is the one that kwok manages. Its status would be kwok's to fill in, but
// the stage node/fast only completes what a Node brings along.
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
spec: {}
`

const nodeStatus = `
apiVersion: v1
kind: Node
metadata: {name: node-0}
status:
  allocatable: {cpu: "64", memory: 256Gi, pods: "1000"}
  capacity: {cpu: "64", memory: 256Gi, pods: "1000"}
`

// createNode gives the scheduler a place for pods.
func (c *Cluster) createNode(ctx context.Context) error {
	if err := c.Apply(ctx, node); err != nil {
		return err
	}
	objects, err := parse([]byte(nodeStatus))
	if err != nil {
		return err
	}
	return c.ApplyStatus(ctx, objects[0])
}
