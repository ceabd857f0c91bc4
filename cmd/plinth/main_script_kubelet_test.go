package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plinth-io/plinth/server/kubelettest"
)

// kubeletStart runs a kubelet for the rest of the script, on port $KUBELET_PORT; it lets
// the script's server in.
func kubeletStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: kubelet-start")
	}
	ca, err := os.ReadFile(filepath.Join(ts.Getenv("WORK"), "data", "pki", "ca.crt"))
	ts.Check(err)
	ts.Setenv("KUBELET_PORT", strconv.Itoa(kubelettest.Start(of(ts).t, ca).Port()))
}

var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) ->`)

// portForward sends one request through kubectl port-forward. The answer is the standard output.
func portForward(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: port-forward POD PORT PATH")
	}
	cmd := exec.Command("kubectl", "port-forward", "--address=127.0.0.1", args[0], ":"+args[1])
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "KUBECONFIG=" + ts.Getenv("KUBECONFIG"), "PATH=" + ts.Getenv("PATH")}
	body, err := getForwarded(cmd, args[2])
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), body)
}

// getForwarded runs kubectl port-forward until it has read path through it.
func getForwarded(cmd *exec.Cmd, path string) (string, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := forwarding.FindStringSubmatch(lines.Text()); found != nil {
			resp, err := http.Get("http://" + found[1] + path)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
	}
	return "", errors.New("kubectl port-forward ended")
}
