# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# cgo is needed because SQLite is C, and with the tag cluster kube-controller-manager and kube-scheduler are inside. The C library is the same as in the image below.
RUN CGO_ENABLED=1 go build -trimpath -tags cluster -ldflags '-s -w' -o /plinth ./cmd/plinth \
 && install -d -m 0700 /data

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
ENTRYPOINT ["/usr/local/bin/plinth"]
CMD ["demo", "--listen", "0.0.0.0:6443", "--data-dir", "/data"]

# docker build builds plinth alone.
FROM base AS plinth
ENTRYPOINT ["/usr/local/bin/plinth"]
CMD ["serve", "--listen", "0.0.0.0:6443", "--data-dir", "/data"]
