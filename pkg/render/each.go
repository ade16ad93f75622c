package render

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// worthwhile is how many items make it worth while to share them out.
const worthwhile = 8

// each calls f for every index below n, on all cores where there are many, and reports whether all calls
// returned true. It stops early after a false or a panic: kustomize's filters panic on some invalid
// objects.
func each(n int, f func(i int) bool) bool {
	workers := 1
	if n >= worthwhile {
		workers = min(runtime.GOMAXPROCS(0), n)
	}
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		defer func() {
			if recover() != nil {
				failed.Store(true)
			}
		}()
		for i := next.Add(1) - 1; i < int64(n) && !failed.Load(); i = next.Add(1) - 1 {
			if !f(int(i)) {
				failed.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return !failed.Load()
}
