package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/standup-sh/standup/pkg/report"
)

// The names of the flags that mean the same in every command that has them.
const (
	flagRepo        = "repo"
	flagPath        = "path"
	flagRef         = "ref"
	flagRoot        = "root"
	flagSource      = "source"
	flagVar         = "var"
	flagVarsFile    = "vars-file"
	flagRemoteBases = "allow-remote-bases"
	flagKubeconfig  = "kubeconfig"
	flagContext     = "context"
	flagNamespace   = "namespace"
	flagOutput      = "output"
	flagTimeout     = "timeout"
	flagDryRun      = "dry-run"
	flagQuiet       = "quiet"
	flagNoColor     = "no-color"
	flagLogLevel    = "log-level"
	flagLogEncoding = "log-encoding"
)

func env(flag string) []string {
	return []string{"STANDUP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

func boolFlag(name, usage string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, EnvVars: env(name)}
}

func sliceFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: usage, EnvVars: env(name)}
}

func gitFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(flagRepo, "", "folder `DIR` of the git repository (default: the work tree around the current folder)"),
		stringFlag(flagPath, "", "entry `PATH`: the folder that Flux syncs, from the top of the repository or the current folder (default: found in it)"),
		stringFlag(flagRef, "", "git `REVISION` to read (default: the work tree as it stands)"),
		stringFlag(flagRoot, "", "`DIR` in the repository that the artifact is made of (default: found from the entry path)"),
		sliceFlag(flagSource, "where the content of another source lies: `Kind/namespace/name=DIR`"),
		sliceFlag(flagVar, "a substitution variable that git does not hold: `NAME=VALUE`"),
		stringFlag(flagVarsFile, "", "YAML or NAME=VALUE `FILE` of substitution variables"),
		boolFlag(flagRemoteBases, "let kustomize fetch remote bases over the network"),
	}
}

func clusterFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(flagKubeconfig, "", "kubeconfig `FILE` (default: $KUBECONFIG, then ~/.kube/config)"),
		stringFlag(flagContext, "", "kubeconfig `CONTEXT` (default: the current one)"),
	}
}

func namespaceFlag() cli.Flag {
	return &cli.StringFlag{
		Name: flagNamespace, Aliases: []string{"n"}, Value: "flux-system", EnvVars: env(flagNamespace),
		Usage: "Flux's namespace; names are printed without it",
		Action: func(_ *cli.Context, namespace string) error {
			if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
				return &UsageError{Message: fmt.Sprintf("--%s %q is not the name of a namespace", flagNamespace, namespace)}
			}
			return nil
		},
	}
}

func outputFlag(formats ...string) cli.Flag {
	return &cli.StringFlag{
		Name: flagOutput, Aliases: []string{"o"}, Value: formats[0], EnvVars: env(flagOutput),
		Usage: "output format: " + strings.Join(formats, ", "),
		// Checked with the flags, before anything is read or asked.
		Action: func(_ *cli.Context, format string) error {
			if !slices.Contains(formats, format) {
				return &report.FormatError{Format: format, Known: formats}
			}
			return nil
		},
	}
}

func timeoutFlag(usage, byDefault string) cli.Flag {
	return durationFlag(flagTimeout, usage, byDefault)
}

func durationFlag(name, usage, byDefault string) cli.Flag {
	return &cli.DurationFlag{
		Name: name, Usage: usage, DefaultText: byDefault, EnvVars: env(name),
		Action: func(_ *cli.Context, d time.Duration) error {
			if d <= 0 {
				return &UsageError{Message: fmt.Sprintf("--%s %s is no time to wait", name, d)}
			}
			return nil
		},
	}
}

func dryRunFlag() cli.Flag {
	return boolFlag(flagDryRun, "print what would be written, and write nothing")
}

// commonFlags are the flags of every command.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		boolFlag(flagQuiet, "no progress on stderr", "q"),
		boolFlag(flagNoColor, "no colour, whatever the terminal (as does a non-empty $NO_COLOR)"),
		stringFlag(flagLogLevel, "error", "log `LEVEL` on stderr: debug, info, warn, error"),
		stringFlag(flagLogEncoding, "console", "log `ENCODING`: console, json"),
	}
}

func flags(groups ...[]cli.Flag) []cli.Flag {
	var out []cli.Flag
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}
