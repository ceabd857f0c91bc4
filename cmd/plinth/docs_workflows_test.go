package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
)

type workflowStep struct {
	ID, Name, Uses, Run string
	Env                 map[string]string
}

// strictYAML reads a file of GitHub's, whose keys must not occur twice.
func strictYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	must(t, err)
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err == nil {
		err = yaml.Unmarshal(asJSON, into)
	}
	if err != nil {
		t.Errorf("%s: %v", file, err)
	}
}

// TestWorkflows reads the workflows: each says what it may do and how long it may take, and runs targets that the Makefile
// has. make lint-workflows says more.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	must(t, err)
	targets := found(makefile, `(?m)^([a-z-]+):()`)
	ran := 0
	for _, name := range []string{"test", "release", "image"} {
		file := ".github/workflows/" + name + ".yml"
		var w struct {
			Name        string
			Permissions map[string]string
			Jobs        map[string]struct {
				Timeout int `json:"timeout-minutes"`
				Steps   []workflowStep
			}
		}
		strictYAML(t, file, &w)
		if w.Name != name || len(w.Permissions) == 0 || len(w.Jobs) == 0 {
			t.Errorf("%s: name %s, permissions %v, %d jobs", file, w.Name, w.Permissions, len(w.Jobs))
		}
		for job, j := range w.Jobs {
			if j.Timeout == 0 || len(j.Steps) == 0 {
				t.Errorf("%s: the job %s may take for ever, or has no steps", file, job)
			}
			for _, step := range j.Steps {
				for target := range found([]byte(step.Run), `\bmake ([a-z-]+)()`) {
					if _, there := targets[target]; !there {
						t.Errorf("%s: there is no make %s", file, target)
					}
					ran++
				}
			}
		}
	}
	if ran < 7 {
		t.Errorf("the workflows run %d targets", ran)
	}
	for _, form := range []string{"bug", "feature", "config"} {
		strictYAML(t, ".github/ISSUE_TEMPLATE/"+form+".yml", &map[string]any{})
	}
}

// TestVersions compares the version in the manifests and in what docs/install.md downloads with each other, and with the newest release
// in the changelog, once there is one.
func TestVersions(t *testing.T) {
	t.Parallel()
	const version = `(v\d+\.\d+\.\d+)`
	seen := map[string]string{}
	for file, pattern := range map[string]string{
		"docs/kubernetes/sqlite/kustomization.yaml":   `newTag: ` + version,
		"docs/kubernetes/postgres/kustomization.yaml": `newTag: ` + version,
		"docs/install.md": `releases/download/` + version,
		"CHANGELOG.md":    `(?m)^## \[` + strings.Replace(version, "v", "", 1) + `\]`,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(readDocument(t, file))
		if m == nil && file != "CHANGELOG.md" {
			t.Errorf("%s names no version", file)
		} else if m != nil {
			seen["v"+strings.TrimPrefix(m[1], "v")] += " " + file
		}
	}
	for _, m := range regexp.MustCompile(`(?:plinth[_-]|plinth@|plinth:)v?(\d+\.\d+\.\d+)`).FindAllStringSubmatch(readDocument(t, "docs/install.md"), -1) {
		seen["v"+m[1]] += " docs/install.md"
	}
	if len(seen) != 1 {
		t.Errorf("several versions are named: %v", seen)
	}
}

// TestAction plays the steps of the action as a runner does, with the plinth that is installed, and says how long that takes.
func TestAction(t *testing.T) {
	t.Parallel()
	program, err := built()
	must(t, err)
	kubectl, err := kubectltest.Path()
	must(t, err)
	r := &runner{dir: t.TempDir(), path: filepath.Dir(program) + ":" + os.Getenv("PATH")}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []workflowStep }
	}
	strictYAML(t, "action.yml", &action)
	inputs := map[string]string{"github.action_ref": "main", "inputs.version": "installed", "inputs.dsn": action.Inputs["dsn"].Default, "inputs.args": "--history 1m --controllers=none"}
	began := time.Now()
	for _, step := range action.Runs.Steps {
		r.step(t, step, inputs)
	}
	t.Logf("the action took %.2f s", time.Since(began).Seconds())
	config := r.file("env")["KUBECONFIG"]
	if out := r.file("output"); config == "" || out["kubeconfig"] != config || !strings.HasSuffix(out["log"], "/log") {
		t.Fatalf("the action set KUBECONFIG=%s and the outputs %v", config, out)
	}
	get := exec.CommandContext(t.Context(), kubectl, "get", "namespaces", "--kubeconfig="+config)
	if out := saidBy(t, get); !strings.Contains(out, "kube-system") {
		t.Errorf("kubectl get namespaces: %s", out)
	}
	// A plinth that cannot start fails the step, and its log is shown.
	inputs["inputs.args"] = "--listn 127.0.0.1:0"
	last := action.Runs.Steps[len(action.Runs.Steps)-1]
	if out, err := r.command(last, inputs).CombinedOutput(); err == nil || !strings.Contains(string(out), "did you mean --listen?") || !strings.Contains(string(out), "::error::") {
		t.Errorf("with a mistyped flag: %v: %s", err, out)
	}
}

// runner is what the steps of an action see of GitHub's runner.
type runner struct{ dir, path string }

// command is the step in the shell that a runner takes for bash.
func (r *runner) command(step workflowStep, inputs map[string]string) *exec.Cmd {
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + r.path, "HOME=" + r.dir, "RUNNER_TEMP=" + r.dir}
	for _, name := range []string{"ENV", "OUTPUT", "PATH"} {
		cmd.Env = append(cmd.Env, "GITHUB_"+name+"="+filepath.Join(r.dir, strings.ToLower(name)))
	}
	for name, value := range step.Env {
		value = regexp.MustCompile(`\$\{\{ *([\w.]+) *\}\}`).ReplaceAllStringFunc(value, func(expression string) string {
			return inputs[strings.Trim(expression, "${} ")]
		})
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// step runs a step, and at the end of the test what it has left running is ended, as at the end of a job.
func (r *runner) step(t *testing.T, step workflowStep, inputs map[string]string) {
	t.Helper()
	cmd := r.command(step, inputs)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("step-%s.log", step.Name)))
	must(t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out // a file, because what is left running must not keep the step from its end
	must(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) })
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(out.Name())
		t.Fatalf("%s: %v: %s", step.Name, err, text)
	}
}

// file returns the names and values that steps have written for the runner.
func (r *runner) file(name string) map[string]string {
	text, _ := os.ReadFile(filepath.Join(r.dir, name))
	return found(text, `(?m)^(\w+)=(.*)$`)
}
