#!/usr/bin/env bash
# Says what a review would ask for, and changes nothing that is tracked: modules tidy, generated
# files up to date, formatting, vet, lint. Ends at the first thing that is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '== %s\n' "$*"; }

step modules are tidy
go mod tidy -diff
for dir in test/cluster/modules/*/ scripts/tools/; do
	(cd "$dir" && go mod verify >/dev/null)
done

step formatting
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "gofmt would change:"; echo "$unformatted"; exit 1; }

step vet
go vet ./...

step generated files are up to date
before=$(git status --porcelain; git diff | sha256sum)
go generate ./...
after=$(git status --porcelain; git diff | sha256sum)
[ "$before" = "$after" ] || { echo "go generate changed files:"; git status --porcelain; exit 1; }

step lint
go tool -modfile=scripts/tools/go.mod golangci-lint run ./...

echo "verify: all well"
