# Needs Go and a C compiler (SQLite is C). `make help` lists the targets.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

export CGO_ENABLED := 1
CC ?= cc

.DEFAULT_GOAL := help
.PHONY: help run build test test-cluster test-quick bench fuzz lint clean cc

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

run: cc ## serve SQLite in ./plinth-data on https://127.0.0.1:6443
	go run ./cmd/plinth serve

build: cc ## build ./plinth
	go build -trimpath -ldflags '-s -w' -o plinth ./cmd/plinth

test: cc ## all tests under the race detector, with real Postgres and MariaDB, but test-cluster
	go run ./dialects/logtest/withservers -- go test -race -timeout 30m ./...

# Apart from test, and without the race detector: building the components takes two processors
# more than five minutes the first time.
CLUSTER ?= sqlite,postgres,mariadb
test-cluster: cc ## kube-controller-manager, kube-scheduler, kubelet, kwok and helm on plinth; CLUSTER=sqlite,postgres,mariadb
	go run ./dialects/logtest/withservers -- env PLINTH_TEST_CLUSTER=$(CLUSTER) go test -timeout 30m -run '^TestCluster$$' -v ./cmd/plinth

test-quick: cc ## the same without the race detector
	go run ./dialects/logtest/withservers -- go test ./...

bench: cc ## plinth's own benchmarks: a table, and charts under ./bench-out
	go run ./dialects/logtest/withservers -durable -- go run ./cmd/plinth bench

FUZZTIME ?= 30s
fuzz: cc ## every fuzz target in turn, FUZZTIME each
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -h '^func Fuzz' $$dir/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; done; done

lint: cc ## gofmt, go vet, staticcheck, and govulncheck where its database can be had
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt -w $$files"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	@.ci/vuln $(GOVULNCHECK)

clean: ## remove what the other targets made, but not ./plinth-data
	rm -rf plinth bench-out

cc:
	@command -v $(firstword $(CC)) >/dev/null || { \
	  echo "no C compiler ($(CC)): SQLite is C and needs one; on Debian and Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }
