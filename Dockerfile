# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# cgo is needed because SQLite is C. The C library is the same as in the image below.
RUN CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o /plinth ./cmd/plinth \
 && install -d -m 0700 /data

# The programs that make demo runs with plinth. They are built only for the target demo, and reuse the
# packages that were compiled for plinth.
FROM build AS build-demo
RUN mkdir /demo \
 && CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o /demo/ ./cmd/plinth-demo \
 && cd cmd/plinth/testdata/cluster \
 && CGO_ENABLED=1 go build -trimpath -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2' -o /demo/ \
      k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler sigs.k8s.io/kwok/cmd/kwok \
 && ./stages.sh >/demo/stage-fast.yaml

FROM debian:bookworm-slim AS base
COPY --from=build /plinth /usr/local/bin/plinth
# A new volume gets the owner and mode of this directory. plinth runs as the user 65532.
COPY --from=build --chown=65532:65532 /data /data
VOLUME /data
EXPOSE 6443
USER 65532:65532
STOPSIGNAL SIGTERM

# docker build --target demo builds a control plane with simulated nodes.
FROM base AS demo
COPY --from=build-demo /demo/ /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/plinth-demo", "-dir", "/data", "-bin", "/usr/local/bin", "-plinth", "/usr/local/bin/plinth"]
CMD ["-listen", "0.0.0.0:6443"]

# docker build builds plinth alone.
FROM base AS plinth
ENTRYPOINT ["/usr/local/bin/plinth"]
CMD ["serve", "--listen", "0.0.0.0:6443", "--data-dir", "/data"]
