package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// asTimed is the first argument that makes suite be the program that runs a test binary, for go test -exec.
const asTimed = "timed"

// timed runs a test binary and prints what it and the processes that it waited for have used of the
// processors. The exit code is that of the binary.
func timed(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	// go test sends SIGQUIT to a binary that has not ended in time.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	go passOn(signals, cmd.Process)
	_ = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	state := cmd.ProcessState
	fmt.Printf("suite: %.2fs of the processors\n", (state.UserTime() + state.SystemTime()).Seconds())
	if !state.Exited() {
		fmt.Fprintln(os.Stderr, state)
		return 2
	}
	return state.ExitCode()
}

// used matches timed's line.
var used = regexp.MustCompile(`^suite: ([\d.]+)s of the processors\n`)

// spentLine matches the lines of dialects/logtest/spent.
var spentLine = regexp.MustCompile(`(?m)^spent ([\d.]+)s (.+)$`)

func seconds(text string) time.Duration {
	f, _ := strconv.ParseFloat(text, 64) // the expressions above let only numbers through
	return time.Duration(f * float64(time.Second))
}
