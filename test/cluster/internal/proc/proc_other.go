//go:build unix && !linux

package proc

func prepare(c Command) (prepared, error) { return guarded(c) }
