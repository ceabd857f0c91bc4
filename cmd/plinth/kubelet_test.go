package main

import (
	"bufio"
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

// portForward runs kubectl port-forward for one request; what came back is the stdout.
func portForward(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: port-forward POD PORT PATH")
	}
	cmd := exec.Command("kubectl", "port-forward", "--address=127.0.0.1", args[0], ":"+args[1])
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "KUBECONFIG=" + ts.Getenv("KUBECONFIG"), "PATH=" + ts.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := forwarding.FindStringSubmatch(lines.Text()); found != nil {
			resp, err := http.Get("http://" + found[1] + args[2])
			ts.Check(err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			ts.Check(err)
			fmt.Fprintf(ts.Stdout(), "%s", body)
			return
		}
	}
	ts.Fatalf("kubectl port-forward ended")
}
