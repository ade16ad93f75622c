package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// flagVersion is what people type who do not know of `standup version`.
const flagVersion = "version"

// What the flag package says, which names flags with one dash and the types of Go.
var (
	unknownFlag  = regexp.MustCompile(`^flag provided but not defined: -(.+)$`)
	missingValue = regexp.MustCompile(`^flag needs an argument: -(.+)$`)
	badDuration  = regexp.MustCompile(`^invalid value "(.*)" for flag -(\S*timeout): `)
)

// usageError replaces urfave's own handler, which prints the whole help to stdout. The flags are
// those of the command, which is typed as name says.
func usageError(name string, flags []cli.Flag) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		e := &UsageError{Message: err.Error(), Help: name}
		if m := unknownFlag.FindStringSubmatch(e.Message); m != nil {
			e.Message = fmt.Sprintf("%s has no flag %s%s", name, dashed(m[1]), didYouMean(dashed(m[1]), flagNames(flags)))
			if name == "standup" {
				e.Message = fmt.Sprintf("%s before a command: flags come after it, as in standup tiers --path clusters/prod", dashed(m[1]))
			}
		} else if m := missingValue.FindStringSubmatch(e.Message); m != nil {
			e.Message = dashed(m[1]) + " needs a value"
		} else if m := badDuration.FindStringSubmatch(e.Message); m != nil {
			e.Message = fmt.Sprintf("--%s %q is not a duration such as 90s, 5m or 1h30m", m[2], m[1])
		}
		return e
	}
}

// tooManyArguments says what to do with what is no flag.
func tooManyArguments(c *cli.Context, name string) error {
	given := c.Args().First()
	if known := commandNames(c.Command.Subcommands); len(known) > 0 {
		if meant := didYouMean(given, known); meant != "" {
			return &UsageError{Message: fmt.Sprintf("there is no command \"%s %s\"%s", name, given, meant), Help: name}
		}
	}
	return &UsageError{Message: fmt.Sprintf("%s takes no arguments, only flags: %q", name, strings.Join(c.Args().Slice(), " ")), Help: name}
}

// repeated says which flag that has one value was given several. The last would win, and nobody
// would know of the others.
func repeated(c *cli.Context, args []string) error {
	for _, f := range c.Command.Flags {
		if _, single := f.(*cli.StringFlag); !single {
			continue
		}
		times := 0
		for _, arg := range args {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if strings.HasPrefix(arg, "-") && slices.Contains(f.Names(), name) {
				times++
			}
		}
		if times > 1 {
			return &UsageError{Message: fmt.Sprintf("--%s is given %d times, and takes one value", f.Names()[0], times)}
		}
	}
	return nil
}

func dashed(flag string) string { return strings.Repeat("-", min(len(flag), 2)) + flag }

func flagNames(flags []cli.Flag) []string {
	var out []string
	for _, f := range flags {
		for _, name := range f.Names() {
			out = append(out, dashed(name))
		}
	}
	return out
}

func commandNames(commands []*cli.Command) []string {
	out := make([]string, 0, len(commands))
	for _, c := range commands {
		out = append(out, c.Name)
	}
	return out
}

// didYouMean is the end of a message about a word that is not among the known ones; empty where none
// of those is close.
func didYouMean(word string, known []string) string {
	best, least := "", len(strings.Trim(word, "-"))/3+2
	for _, k := range known {
		if d := smetrics.WagnerFischer(strings.ToLower(word), strings.ToLower(k), 1, 1, 1); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return ". Did you mean " + best + "?"
}
