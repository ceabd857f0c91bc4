# Needs Go and a C compiler (SQLite is C). `make help` lists the targets.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOSEC := github.com/securego/gosec/v2/cmd/gosec@v2.30.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

export CGO_ENABLED := 1
# Without paths in them, compiled packages are the same in every checkout on a machine, so the build cache has them for all.
# Without data for debuggers, which no linked program keeps (-s -w), they are a quarter smaller, and compiled and linked in a tenth less time.
# gRPC without its trace pages leaves no code that calls methods by a name of which the linker knows nothing: it leaves out what
# nobody calls, a fifth of a test program. Kubernetes builds its programs with the same tag. -tags replaces an earlier -tags.
TAG := grpcnotrace
SHARED := -trimpath $(if $(findstring -gcflags,$(GOFLAGS)),,-gcflags=all=-dwarf=false) $(if $(findstring -tags,$(GOFLAGS)),,-tags=$(TAG))
export GOFLAGS := $(strip $(GOFLAGS) $(filter-out $(GOFLAGS),$(SHARED)))
# For what has kube-controller-manager and kube-scheduler inside.
WITH_CLUSTER = GOFLAGS="$(GOFLAGS) -tags=cluster,$(TAG)"
CC ?= cc

# Go collects garbage when there is as much as what is in use. With three times as much, compiling, linking and tests need about
# a tenth less of the processors. Programs that make runs or measures collect as they do elsewhere.
test test-race test-quick lint: export GOGC := $(or $(GOGC),300)
# A program with the race detector waits for a second before it ends, for goroutines that nobody waits for. There are a hundred such
# programs, and their tests end what they start.
test test-race test-quick: export GORACE := $(or $(GORACE),atexit_sleep_ms=100)

.DEFAULT_GOAL := help
.PHONY: help run build build-cluster demo test test-cluster test-e2e test-etcd record kubernetes test-quick test-race test-hostile test-pgbouncer test-ha torture mutants additions bench fuzz lint lint-workflows gosec release release-check image-push clean cc

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: build ## build plinth and serve on https://127.0.0.1:6443, with SQLite in ./plinth-data
	@./plinth serve --ui

build: cc ## build ./plinth, quicker, without kube-controller-manager and kube-scheduler
	@.ci/compile plinth ./cmd/plinth

build-cluster: cc ## build ./plinth as it is released, with kube-controller-manager and kube-scheduler inside
	@$(WITH_CLUSTER) .ci/compile plinth ./cmd/plinth

demo: build-cluster ## run a control plane with simulated nodes, until Ctrl-C
	@exec ./plinth demo

# ./... leaves out directories that begin with a dot.
EVERYWHERE := ./... ./.ci/suite ./.ci/patched ./.ci/mutants ./.ci/additions ./.ci/kubernetes

# What test and test-quick run: PKG names packages, CHANGED=1 chooses those that the change since SINCE (main) touches and
# those that import them, RUN is go test -run's pattern, and JSON a file for what go test -json says, of which
# `go run ./.ci/suite FILE` makes the tables again.
SUITE = go run ./dialects/logtest/withservers -memory -- go run ./.ci/suite -packages '$(or $(PKG),$(EVERYWHERE))' $(if $(JSON),-o $(JSON)) $(if $(CHANGED),-changed -since $(or $(SINCE),main))
# A hundred test programs are linked. gold takes half a second less for each with SQLite than the linker that gcc takes by itself.
GOLD = $(if $(shell command -v ld.gold),-ldflags=-extldflags=-fuse-ld=gold)
GO_TEST = go test -vet=off -shuffle=on -timeout 60m $(GOLD) $(if $(RUN),-run '$(RUN)')

# go vet is part of lint. As root it installs databases that are missing, and says so before; PLINTH_TEST_INSTALL=0
# forbids that.
test: cc ## run all tests but test-cluster's with real Postgres and MariaDB, under the race detector where goroutines meet; PKG=./server/rest or CHANGED=1: some; RUN=TestA
	@$(SUITE) -race -- $(GO_TEST)

test-race: cc ## run the tests of test, all of them under the race detector
	@$(SUITE) -- $(GO_TEST) -race

# These tests are not part of test, and run without the race detector, because the first build of the
# components takes more than five minutes on two processors.
# KILLS is how often TestClusterTorture kills the plinth that runs the controllers, and SEED what its clients do meanwhile.
CLUSTER ?= sqlite,postgres,mariadb
KILLS ?= 5
test-cluster: cc ## test plinth with kube-controller-manager, kube-scheduler, inside and as programs, kubelet (also the oldest), kwok and helm, and test demo; CLUSTER=sqlite,postgres,mariadb KILLS=5
	$(WITH_CLUSTER) go vet ./cmd/plinth ./server/components/...
	$(WITH_CLUSTER) go run ./dialects/logtest/withservers -- env PLINTH_TEST_CLUSTER=$(CLUSTER) PLINTH_TEST_CLUSTER_KILLS=$(KILLS) PLINTH_TEST_TORTURE_SEED=$(SEED) go test -p 1 -timeout 60m -run '^Test(Cluster|ClusterAway|ClusterInside|ClusterKilled|ClusterSkew|ClusterTorture|Demo|BenchDeployments)$$' -v ./cmd/plinth

# E2E is how many tests run at a time. One of them waits for five minutes.
E2E ?= 8
test-e2e: cc ## run upstream's end-to-end tests that need no containers on plinth with the components inside and simulated nodes; E2E=8: so many at a time
	$(WITH_CLUSTER) PLINTH_TEST_E2E=$(E2E) go test -vet=off -timeout 90m -run '^TestClusterE2E$$' -v ./cmd/plinth

# SEED and REQUESTS are those of the random requests that etcd and plinth are compared by. SEED is also
# that of the load that goes on for SECONDS through kills and outages, whose history is checked.
SEED ?= $(shell date +%s)
REQUESTS ?= 40000
SECONDS ?= 300
# The first build of the kube-apiservers takes ten minutes on two processors.
APISERVER ?= sqlite,postgres,mariadb
test-etcd: cc ## compare plinth with etcd 3.6 and 3.7 at length, by REQUESTS random requests from SEED, break it for SECONDS, and run kube-apiservers on it and on exports
	go run ./dialects/logtest/withservers -- env PLINTH_TEST_ETCD_SEED=$(SEED) PLINTH_TEST_ETCD_REQUESTS=$(REQUESTS) PLINTH_TEST_ETCD_SECONDS=$(SECONDS) go test -timeout 60m ./server/etcd/etcdtest
	go run ./dialects/logtest/withservers -- env PLINTH_TEST_APISERVER=$(APISERVER) go test -timeout 60m -run '^Test(KubeAPIServer|ImportAPIServer|ExportToKubeAPIServer)$$' -v ./cmd/plinth

# MODULE is the folder whose go.mod says which release answers, in cmd/plinth/testdata unless it is absolute. Its first build takes ten minutes on
# two processors. What a recording has of an answer is made by the test that reads it.
MODULE ?= cluster
record: cc ## record anew what kube-apiserver answers, wherever tests compare with that (server/recordedtest); git diff shows what has changed
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && export GOWORK=off && \
	  (cd cmd/plinth/testdata && cd $(MODULE) && release=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && minor=$${release#v1.} && v=k8s.io/component-base/version && \
	    LDFLAGS="-s -w -X $$v.gitVersion=$$release -X $$v.gitMajor=1 -X $$v.gitMinor=$${minor%%.*}" \
	    $(CURDIR)/.ci/compile $$dir/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver) && \
	  (cd cmd/plinth/testdata/etcd && $(CURDIR)/.ci/compile $$dir/etcd go.etcd.io/etcd/server/v3) && \
	  PLINTH_TEST_RECORD=$$dir go test -vet=off -count=1 -timeout 30m -run '$(or $(RUN),Record|TestFairnessClassified)' ./server ./server/rest ./server/admission

# RELEASE is a version of k8s.io/kubernetes. RECORD=0 leaves out the recordings, whose kube-apiserver takes ten minutes to build.
kubernetes: cc ## move plinth to another release of Kubernetes: RELEASE=v1.38.0; it says what is left to do, and commits nothing
	@go run ./.ci/kubernetes $(if $(filter 0,$(RECORD)),-record=false) $(RELEASE)

# What is skipped is about a server's own answers and parameters, which PgBouncer replaces by its own.
test-pgbouncer: cc ## run the tests of Postgres and of replicas behind PgBouncer in transaction mode
	go run ./dialects/logtest/withservers -pgbouncer -- go test -p 1 -timeout 30m -run 'Postgres|Replicas|/postgres|Pooler' \
	  -skip 'TestRefusedDSN|TestDroppedDatabase|TestOpenEnds|TestPostgresRights|/mariadb|/sqlite' ./dialects/logtest ./sqlstore
	go run ./dialects/logtest/withservers -pgbouncer -- go test -p 1 -timeout 30m -run '^TestReplicas' -skip '/mariadb' ./cmd/plinth

# A cluster of three databases starts in a minute on two processors. PLINTH_TEST_HA also says what is installed.
HA ?= galera,patroni
test-ha: cc ## run plinth on highly available databases whose servers stop and die; HA=galera,patroni
	PLINTH_TEST_HA=$(HA) go run ./dialects/logtest/withservers -- go test -p 1 -timeout 60m -run '^TestHA' -v ./dialects/logtest/... ./cmd/plinth

# HA=galera is said to mean the cluster alone.
torture: TORTURE = $(if $(filter command environment,$(firstword $(origin HA))),^TestHAGaleraEverywhere$$/^torture$$,^TestTorture$$)
torture: cc ## try to break plinth for SECONDS by faults from SEED, on each database; HA=galera: on a Galera cluster, whose nodes die
	$(if $(filter command environment,$(firstword $(origin HA))),PLINTH_TEST_HA=$(HA)) go run ./dialects/logtest/withservers -- env PLINTH_TEST_TORTURE_SECONDS=$(SECONDS) PLINTH_TEST_TORTURE_SEED=$(SEED) go test -timeout 0 -run '$(TORTURE)' -v ./cmd/plinth

test-quick: cc ## run the tests of test that do not take long, without the race detector and on SQLite, dialects on all; PKG, CHANGED, RUN as for test
	@$(SUITE) -quick -- $(GO_TEST)

test-hostile: cc ## attack a server with many connections, streams, stalls and bodies: the tests of hostile clients forty times as large
	PLINTH_TEST_HOSTILE=1 go test -timeout 20m -run Hostile -v ./server

bench: cc ## run plinth's benchmarks, print a table, and write charts to ./bench-out
	go run ./dialects/logtest/withservers -durable -- go run ./cmd/plinth bench

# NAME=floor-too-early plants that one. Before each fault the same tests run without it.
mutants: cc ## plant the faults of .ci/mutants one at a time, and say which of them the tests do not notice; NAME=floor-too-early: that one
	@go run ./.ci/mutants $(NAME)

# NAME=subcommand adds that one.
additions: cc ## add what each row of CONTRIBUTING.md's table says, one thing at a time, and compile it; NAME=subcommand: that one
	@go run ./.ci/additions $(NAME)

# An input that covers something new is made smaller for a second, not for a minute: what goroutines cover beside it differs each
# time, so nothing comes of it, and a target that starts some tried a dozen inputs in ten minutes.
FUZZTIME ?= 30s
fuzz: cc ## run every fuzz target for FUZZTIME (30s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -h '^func Fuzz' $$dir/*_test.go | sed 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/'); do \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir || exit 1; done; done

ui-pictures: cc ## take the pictures of docs/ui anew, with Chromium
	@go run ./dialects/logtest/withservers -- env PLINTH_UI_PICTURES=$(CURDIR)/docs/ui go test -vet=off -count=1 -run '^TestPictures$$' ./cmd/plinth/ui

lint: cc ## run gofmt, go vet, staticcheck, and govulncheck if its database can be reached
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt -w $$files"; exit 1; fi
	go vet $(EVERYWHERE)
	go run $(STATICCHECK) $(EVERYWHERE)
	@.ci/vuln $(GOVULNCHECK)

# PLINTH_SIGNING_KEY is the path of minisign's secret key. Without it, a key is made for this build alone.
release: cc ## make archives, packages, images, a formula and install.sh in ./dist, for linux/amd64 and linux/arm64, with checksums, signature and SBOMs; VERSION=v1.2.3
	@cd .ci/release && GOWORK=off go run . -version '$(VERSION)'

release-check: cc ## install and start what make release has made, as root: archives and the deb on a bare Debian, arm64 in an emulator, images, rpms, install.sh
	@cd .ci/release && GOWORK=off go vet . && GOWORK=off go test -vet=off -count=1 -timeout 60m -v .

# IMAGE is the name in a registry, for which docker's configuration has the credentials.
image-push: cc ## push the image that make release has made; VERSION=v1.2.3 IMAGE=ghcr.io/plinth-io/plinth:v1.2.3
	@cd .ci/release && GOWORK=off go run . -version '$(VERSION)' -image '$(IMAGE)'

lint-workflows: cc ## run actionlint on the workflows in .github
	go run $(ACTIONLINT) $(wildcard .github/workflows/*.yml)

clean: ## remove the output of the other targets, except ./plinth-data
	rm -rf plinth dist bench-out

cc:
	@command -v $(firstword $(CC)) >/dev/null || { \
	  echo "no C compiler ($(CC)): SQLite is C and needs one; on Debian and Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }
