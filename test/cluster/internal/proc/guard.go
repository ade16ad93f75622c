//go:build unix

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guarded wraps c in the shell of guardScript. It works on every Unix.
func guarded(c Command) (prepared, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return prepared{}, fmt.Errorf("making the guard of %s: %w", c.Path, err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", guardScript, "guard", c.Path}, c.Args...)...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, read, c.Log, c.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return prepared{cmd: cmd, guard: write, stdin: read}, nil
}

// guardScript runs its arguments as a child and kills the whole process group
// when standard input ends, which it does when the process at the other end of
// the pipe is gone. It ends with the child's own exit code. On a SIGTERM sent to
// the group the child decides when to end, the shell only waits for it.
const guardScript = `
trap : TERM
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
(trap '' TERM; read -r _ <&3; kill -9 0) >/dev/null 2>&1 &
watch=$!
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
kill -9 $watch 2>/dev/null
exit $code
`
