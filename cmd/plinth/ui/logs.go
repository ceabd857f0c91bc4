package ui

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientrest "k8s.io/client-go/rest"
)

// logsPage is the page of a pod's containers and what they write.
type logsPage struct {
	*subject
	Containers []containerState
	Container  string // whose log is shown
	Previous   bool   // of the run before the last restart
	Follow     bool
	Tail       int
	Tails      []int
	Lines      []string
	Cut        bool // the first lines are left out
	Live       string
	Fault      *explained
}

// containerState is how a container is.
type containerState struct {
	Name, Image    string
	Kind           string // init, ephemeral, or empty
	State          string // running, waiting, terminated
	Reason         string
	Message        string
	Good           string
	Since          time.Time
	Restarts       int32
	Exit           *int32
	Last           string // how the run before ended
	LastEnd        time.Time
	Ready, Current bool
}

const (
	tailDefault = 200
	tailMost    = 5000
	logBytes    = 2 << 20 // of a log that is not followed
)

// logs shows what a container has written.
func (s *subject) logs() error {
	var err error
	var pod corev1.Pod
	if s.Resource != "pods" || !fromUnstructured(s.Object, &pod) {
		return problem(http.StatusNotFound, "Only pods have logs.")
	}
	b := &logsPage{subject: s, Container: cmp.Or(s.param("container"), defaultContainer(&pod)), Previous: s.param("previous") == "1",
		Follow: s.param("follow") == "1", Tail: s.tail(), Tails: []int{100, tailDefault, 1000, tailMost}}
	b.Containers = containersOf(&pod, b.Container)
	switch {
	case !s.at.IsNow():
		return s.show("logs.html", page{Title: s.Name + " · logs", Nav: s.Resource, Body: b})
	case b.Follow && !b.Previous:
		b.Live = s.link("live/logs/"+url.PathEscape(s.Namespace)+"/"+url.PathEscape(s.Name), "container", b.Container, "tail", strconv.Itoa(b.Tail))
	default:
		err = b.read()
	}
	if err != nil {
		e := noLog(err)
		b.Fault = &e
	}
	return s.show("logs.html", page{Title: s.Name + " · logs", Nav: s.Resource, Body: b})
}

// noLog explains why there is no log, which often is about the node and not about the pod.
func noLog(err error) explained {
	e := explain(err)
	if !apierrors.IsForbidden(err) {
		e.Title, e.Advice = "There is no log to show", ""
	}
	return e
}

func (v *visit) tail() int {
	n, err := strconv.Atoi(v.param("tail"))
	if err != nil || n < 1 {
		return tailDefault
	}
	return min(n, tailMost)
}

// logRequest is a request for the log of a container. Each line begins with its time.
func (v *visit) logRequest(namespace, name, container string) *clientrest.Request {
	request := v.conn.rest.Get().AbsPath("api", "v1", "namespaces", namespace, "pods", name, "log").Param("timestamps", "true")
	if container != "" {
		request = request.Param("container", container)
	}
	return request
}

// read reads the end of the log.
func (b *logsPage) read() error {
	request := b.logRequest(b.Namespace, b.Name, b.Container).Param("tailLines", strconv.Itoa(b.Tail))
	if b.Previous {
		request = request.Param("previous", "true")
	}
	body, err := request.Stream(b.ctx())
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, logBytes))
	if len(text) == 0 {
		return err
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		_, line := splitTime(line)
		b.Lines = append(b.Lines, plainText(line))
	}
	b.Cut = len(text) == logBytes
	return err
}

// splitTime takes the time off a line.
func splitTime(line string) (at, rest string) {
	at, rest, ok := strings.Cut(line, " ")
	if _, err := time.Parse(time.RFC3339Nano, at); !ok || err != nil {
		return "", line
	}
	return at, rest
}

// colours are what programs write for terminals.
var colours = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// plainText is a line without what only terminals understand.
func plainText(line string) string {
	return strings.TrimSuffix(colours.ReplaceAllString(line, ""), "\r")
}

// linesAtOnce is how many lines go into an event.
const linesAtOnce = 500

// liveLogs sends what a container writes. A browser that was cut off goes on after the last line that it has.
func (v *visit) liveLogs() error {
	request := v.logRequest(v.r.PathValue("namespace"), v.r.PathValue("name"), v.param("container")).Param("follow", "true")
	last := cmp.Or(v.r.Header.Get("Last-Event-ID"), v.param("rv"))
	if last == "" {
		request = request.Param("tailLines", strconv.Itoa(v.tail()))
	} else {
		request = request.Param("sinceTime", last)
	}
	body, err := request.Stream(v.ctx())
	s := v.stream()
	if err != nil {
		return s.send("fault", "", noLog(err))
	}
	defer body.Close()
	return sendLines(bufio.NewReaderSize(body, 64<<10), s, last)
}

// sendLines passes on lines, those that come together in one event. Lines that are longer than the buffer are cut in
// pieces.
func sendLines(in *bufio.Reader, s *stream, last string) error {
	var lines []string
	at := last
	for {
		text, _, err := in.ReadLine()
		if err == nil {
			when, line := splitTime(string(text))
			if when == "" || when > last { // a log since a time has the line of that time too
				lines = append(lines, plainText(line))
			}
			at = cmp.Or(when, at)
		}
		if len(lines) > 0 && (err != nil || in.Buffered() == 0 || len(lines) == linesAtOnce) {
			if s.send("lines", at, lines) != nil {
				return nil // the browser is gone
			}
			lines = nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.send("end", "", "the log has ended")
		case err != nil:
			return nil // the browser asks again
		}
	}
}

// defaultContainer is the one that kubectl logs takes.
func defaultContainer(pod *corev1.Pod) string {
	if name := pod.Annotations["kubectl.kubernetes.io/default-container"]; name != "" {
		return name
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// containersOf returns the containers of a pod, in the order in which they start.
func containersOf(pod *corev1.Pod, current string) (all []containerState) {
	status := map[string]corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			status[s.Name] = s
		}
	}
	add := func(kind, name, image string) {
		c := containerStateOf(status[name])
		c.Kind, c.Name, c.Image, c.Current = kind, name, image, name == current
		all = append(all, c)
	}
	for _, c := range pod.Spec.InitContainers {
		add("init", c.Name, c.Image)
	}
	for _, c := range pod.Spec.Containers {
		add("", c.Name, c.Image)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add("ephemeral", c.Name, c.Image)
	}
	return all
}

// containerStateOf reads the status of a container.
func containerStateOf(s corev1.ContainerStatus) containerState {
	c := containerState{State: "no status yet", Restarts: s.RestartCount, Ready: s.Ready}
	switch {
	case s.State.Running != nil:
		c.State, c.Since, c.Good = "running", s.State.Running.StartedAt.Time, "yes"
		if !s.Ready {
			c.Good = "warn"
		}
	case s.State.Waiting != nil:
		c.State, c.Reason, c.Message, c.Good = "waiting", s.State.Waiting.Reason, s.State.Waiting.Message, "warn"
		if strings.Contains(c.Reason, "BackOff") || strings.Contains(c.Reason, "Err") {
			c.Good = "no"
		}
	case s.State.Terminated != nil:
		t := s.State.Terminated
		c.State, c.Reason, c.Message, c.Since, c.Exit, c.Good = "ended", t.Reason, t.Message, t.FinishedAt.Time, &t.ExitCode, "yes"
		if t.ExitCode != 0 {
			c.Good = "no"
		}
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		c.Last, c.LastEnd = cmp.Or(t.Reason, "ended")+", exit code "+strconv.Itoa(int(t.ExitCode)), t.FinishedAt.Time
	}
	return c
}
