// Package testdata embeds the fixtures that more than one package needs, so that
// tests and the demo read them wherever they run. To use the home network, see
// test/homenetwork.
package testdata

import "embed"

// HomeNetwork holds home-network, home-network-wedged and home-network-keys as
// they lie in this folder.
//
//go:embed all:home-network all:home-network-wedged all:home-network-keys
var HomeNetwork embed.FS
