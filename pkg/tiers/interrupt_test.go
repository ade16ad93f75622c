package tiers

import (
	"context"
	"errors"
	"testing"
)

// TestUnlessDone interrupts what goes on for ever, and lets what ends come to its end.
func TestUnlessDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan struct{})
	defer close(never)
	if err := unlessDone(ctx, func() { cancel(); <-never }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	ended := false
	if err := unlessDone(t.Context(), func() { ended = true }); err != nil || !ended {
		t.Errorf("ended: %t, %v", ended, err)
	}
}
