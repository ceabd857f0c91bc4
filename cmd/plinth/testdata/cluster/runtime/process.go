package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// enter takes pairs of source and target up to "--", binds each source to its target, and
// becomes what comes after. Targets under /run are made, that directory being the node's
// own; others must be there.
const enter = `
while [ "$1" != -- ]; do
	case "$2" in
	/run/* | /var/run/*)
		if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "${2%/*}" && : >>"$2"; fi ;;
	esac
	if [ -e "$2" ]; then mount --bind "$1" "$2" || exit 125; fi
	shift 2
done
shift
exec "$@"`

// command is the process of a container, not yet started.
func command(config *cri.ContainerConfig) *exec.Cmd {
	args := []string{"--mount", "--propagation=private", "sh", "-c", enter, "container"}
	for _, m := range config.Mounts {
		args = append(args, m.HostPath, m.ContainerPath)
	}
	args = append(args, "--")
	args = append(args, append(config.Command, config.Args...)...)
	if len(config.Command)+len(config.Args) == 0 {
		args = append(args, "sleep", "infinity")
	}
	return process(config, "unshare", args...)
}

// inside is another process in a container that runs.
func inside(c *container, argv []string) *exec.Cmd {
	return process(c.config, "nsenter", append([]string{"--mount", "--target=" + strconv.Itoa(c.pid), "--"}, argv...)...)
}

// process is in a group of its own, so that it is stopped with its children.
func process(config *cri.ContainerConfig, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range config.Envs {
		cmd.Env = append(cmd.Env, e.Key+"="+string(e.Value))
	}
	cmd.Dir = config.WorkingDir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for orphans that have its output open
	return cmd
}

// exitCode is that of a shell: 128 and the signal for who was killed.
func exitCode(state *os.ProcessState) int32 {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int32(128 + status.Signal())
	}
	return int32(state.ExitCode())
}
