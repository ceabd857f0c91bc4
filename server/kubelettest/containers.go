package kubelettest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// containers are the inside of a kubelet: they have these commands.
//
//	cat          copies its input to its output
//	echo ARG...  writes its arguments to its output
//	fail CODE    writes to its errors and exits with that code
//	size         waits for the size of its terminal and writes it
type containers struct{}

func (containers) ExecInContainer(_ context.Context, _, _, _ string, cmd []string,
	in io.Reader, out, errs io.WriteCloser, _ bool, sizes <-chan remotecommand.TerminalSize, _ time.Duration) error {
	switch cmd[0] {
	case "cat":
		_, err := io.Copy(out, in)
		return err
	case "echo":
		_, err := fmt.Fprintln(out, strings.Join(cmd[1:], " "))
		return err
	case "fail":
		fmt.Fprintln(errs, "failed as told")
		code, err := strconv.Atoi(cmd[1])
		return utilexec.CodeExitError{Err: err, Code: code}
	case "size":
		size := <-sizes
		_, err := fmt.Fprintf(out, "%dx%d", size.Width, size.Height)
		return err
	}
	return fmt.Errorf("no command %q", cmd)
}

// AttachContainer greets, and goes on like cat if there is an input.
func (containers) AttachContainer(_ context.Context, name, _, container string,
	in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "this is %s of %s\n", container, name)
	if in == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

// forwarder connects every port to one address.
type forwarder struct{ address string }

func (f forwarder) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	conn, err := net.Dial("tcp", f.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	sent := make(chan struct{})
	go func() { // ends with the stream or the connection
		defer close(sent)
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	stream.Close()
	<-sent
	return err
}

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
}
