package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

func (r *runtime) Exec(_ context.Context, req *cri.ExecRequest) (*cri.ExecResponse, error) {
	return r.streams.GetExec(req)
}

func (r *runtime) PortForward(_ context.Context, req *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return r.streams.GetPortForward(req)
}

// ExecSync is for probes and hooks.
func (r *runtime) ExecSync(ctx context.Context, req *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.Timeout)*time.Second)
		defer cancel()
	}
	var stdout, stderr bytes.Buffer
	err := r.exec(ctx, req.ContainerId, req.Cmd, nil, &stdout, &stderr)
	var failed utilexec.CodeExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	return &cri.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: int32(failed.Code)}, nil
}

// exec runs a command in a container until it ends or the context does.
func (r *runtime) exec(ctx context.Context, id string, argv []string, in io.Reader, out, errs io.Writer) error {
	c := r.container(id)
	if c == nil {
		return notFound("container", id)
	}
	cmd := inside(c, argv)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: int(exitCode(exit.ProcessState))}
	}
	if errors.Is(err, exec.ErrWaitDelay) { // the command has ended well, its input has not
		return nil
	}
	return err
}

// streams is a streaming.Runtime.
type streams struct{ *runtime }

func (s streams) Exec(ctx context.Context, id string, argv []string, in io.Reader, out, errs io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize) error {
	if tty {
		return status.Error(codes.Unimplemented, "there are no terminals")
	}
	return s.exec(ctx, id, argv, in, out, errs)
}

func (s streams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return status.Error(codes.Unimplemented, "attach")
}

// PortForward connects to the port of the machine, whose network all pods have.
func (s streams) PortForward(ctx context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}
