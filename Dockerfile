# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# cgo, because SQLite is C; the C library is the one of the image below.
RUN CGO_ENABLED=1 go build -trimpath -ldflags '-s -w' -o /plinth ./cmd/plinth \
 && install -d -m 0700 /data

FROM debian:bookworm-slim
COPY --from=build /plinth /usr/local/bin/plinth
# A new volume takes owner and mode from here: 65532 is the user that plinth runs as.
COPY --from=build --chown=65532:65532 /data /data
VOLUME /data
EXPOSE 6443
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/plinth"]
CMD ["serve", "--listen", "0.0.0.0:6443", "--data-dir", "/data"]
