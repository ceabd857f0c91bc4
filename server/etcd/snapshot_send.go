package etcd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	snapshotChunk = 32 << 10    // bytes in a message
	snapshotFiles = 4           // files at the same time, each as large as the database
	snapshotStall = time.Minute // how long a client may read nothing while others wait
)

var errSnapshotStall = status.Errorf(codes.Unavailable, "etcdserver: the client has not read its snapshot for %v, and others wait for theirs", snapshotStall)

// snapshots bounds the number of files. Only one is written at a time.
type snapshots struct {
	making, files chan struct{}
	waiting       atomic.Int64 // requests that wait for a file
	stall         time.Duration
}

func (r *snapshots) init() {
	r.making = make(chan struct{}, 1)
	r.files = make(chan struct{}, snapshotFiles)
	r.stall = snapshotStall
}

// enter waits until there may be another file.
func (r *snapshots) enter(ctx context.Context) error {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	return take(ctx, r.files)
}

func (r *snapshots) leave() { <-r.files }

func take(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Snapshot sends the file of an etcd with the same history above the compacted revision, the state at that
// revision, and the leases. The last message is its checksum.
func (m maintenanceService) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	ctx, room := stream.Context(), &m.s.snapshots
	if err := room.enter(ctx); err != nil {
		return toStatus(err)
	}
	f, size, err := m.s.snapshotFile(ctx)
	if err != nil {
		room.leave()
		return toStatus(fmt.Errorf("make a snapshot: %w", err))
	}
	s := &sending{stream: stream, file: f, size: size, done: make(chan error, 1)}
	go func() { // it ends with the stream, at the latest when this method has returned
		defer room.leave()
		defer f.Close()
		s.done <- s.run()
	}()
	return s.wait(room)
}

// sending is a snapshot that is being sent.
type sending struct {
	stream pb.Maintenance_SnapshotServer
	file   *os.File
	size   int64
	sent   atomic.Int64 // messages that gRPC has accepted
	done   chan error   // buffered for the result of run
}

// wait returns when everything is sent, or when the client reads nothing while others wait.
func (s *sending) wait(room *snapshots) error {
	ticker := time.NewTicker(room.stall / 10)
	defer ticker.Stop()
	since, sent := time.Now(), s.sent.Load()
	for {
		select {
		case err := <-s.done:
			return err
		case now := <-ticker.C:
			if n := s.sent.Load(); n != sent {
				since, sent = now, n
			}
			if room.waiting.Load() > 0 && now.Sub(since) > room.stall {
				return errSnapshotStall
			}
		}
	}
}

func (s *sending) run() error {
	file, sum := io.NewSectionReader(s.file, 0, s.size), sha256.New()
	for rest := s.size; rest > 0; {
		chunk := make([]byte, min(snapshotChunk, rest))
		if _, err := io.ReadFull(file, chunk); err != nil {
			return toStatus(fmt.Errorf("read the snapshot: %w", err))
		}
		sum.Write(chunk)
		rest -= int64(len(chunk))
		if err := s.send(&pb.SnapshotResponse{RemainingBytes: uint64(rest), Blob: chunk}); err != nil {
			return err
		}
	}
	return s.send(&pb.SnapshotResponse{Blob: sum.Sum(nil)})
}

func (s *sending) send(r *pb.SnapshotResponse) error {
	r.Version = storageVersion
	err := s.stream.Send(r)
	s.sent.Add(1)
	return err
}
