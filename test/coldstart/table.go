package main

import (
	"fmt"
	"io"
	"time"
)

// workers is kustomize-controller's default for --concurrent.
const workers = 4

// printTable writes the results as a Markdown table. Ratios are to standup in the same run.
func printTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| scenario | Flux alone | script | standup | alone ÷ standup | script ÷ standup | critical path | work ÷ 4 workers | standup ÷ floor |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		s := r.took["standup"]
		floor := max(r.floor, r.work/workers)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.scenario.what,
			seconds(r.took["alone"]), seconds(r.took["script"]), seconds(s),
			ratio(r.took["alone"], s), ratio(r.took["script"], s),
			seconds(r.floor), seconds(r.work/workers), ratio(s, floor))
	}
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func ratio(a, b time.Duration) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a.Seconds()/b.Seconds())
}
