package proc

import (
	"os/exec"
	"syscall"
)

// prepare puts the child into a group of its own, so that a Ctrl-C at the
// terminal reaches this program alone and the order of stopping stays ours.
func prepare(c Command) (prepared, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, c.Log, c.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return prepared{cmd: cmd}, nil
}
