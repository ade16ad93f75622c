package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name:  "completion",
		Usage: "print a script that completes commands and flags in a shell",
		Description: `   source <(standup completion --shell bash)                  for this session
   standup completion --shell zsh > ~/.zfunc/_standup
   standup completion --shell fish > ~/.config/fish/completions/standup.fish`,
		Flags: flags([]cli.Flag{stringFlag("shell", "bash", "bash, zsh or fish")}, commonFlags()),
		Action: func(c *cli.Context) error {
			if c.String("shell") == "fish" {
				script, err := c.App.ToFishCompletion()
				if err != nil {
					return err
				}
				_, err = io.WriteString(a.stdout, script)
				return err
			}
			script, ok := completionScripts()[c.String("shell")]
			if !ok {
				return &UsageError{Message: fmt.Sprintf("--shell %q is not one of bash, zsh, fish", c.String("shell"))}
			}
			_, err := io.WriteString(a.stdout, script)
			return err
		},
	}
}

// completionScripts ask the command itself, with the flag that urfave/cli reserves for it.
func completionScripts() map[string]string {
	return map[string]string{
		"bash": `_standup() {
  local word=${COMP_WORDS[COMP_CWORD]} before=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ $word == -* ]] && before+=("$word")
  COMPREPLY=($(compgen -W "$("${before[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
}
complete -o default -F _standup standup
`,
		"zsh": `#compdef standup
_standup() {
  local -a before=("${(@)words[1,CURRENT-1]}")
  [[ ${words[CURRENT]} == -* ]] && before+=("${words[CURRENT]}")
  compadd -- ${(f)"$("${before[@]}" --generate-bash-completion 2>/dev/null)"}
}
compdef _standup standup
`,
	}
}
