# sledctl is one Go program; everything here is a short name for a go command.
# Demonstrations and tests run on the simulated sled and never reach a real host.

export SLEDCTL_HOST := sim
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
BUILD   := $(GO) build -trimpath -ldflags '$(LDFLAGS)'

# Nothing here needs C, but the race detector; all that is built is built once that way.
export CGO_ENABLED := 0
race: export CGO_ENABLED := 1

.PHONY: build test test-zfs demo bench lint cross packages docs pictures man soak soak-openzfs race fuzz reached fleet-unit fleet-servers fleet-test fleet-generate clean

build: ## bin/sledctl for this machine
	$(BUILD) -o bin/sledctl ./cmd/sledctl

test: ## all tests, on the simulated sled
	@mkdir -p bin
	SLEDCTL_HISTORIES=$(CURDIR)/bin/histories $(GO) test -vet=off -timeout 40m ./test/histories # by itself: it plays as many as it has time for; below, its result is cached
	SLEDCTL_LATTICE=$(CURDIR)/bin/lattice SLEDCTL_KILL_MATRIX=$(CURDIR)/bin/kill-matrix SLEDCTL_HISTORIES=$(CURDIR)/bin/histories SLEDCTL_MUTANTS=$(CURDIR)/bin/mutants SLEDCTL_PEERS=$(CURDIR)/bin/peers $(GO) test -vet=off -timeout 40m ./...
	@cat bin/lattice 2>/dev/null || echo 'lattice: cached; $(GO) test -count=1 -v -run TestLattice ./test/lattice says how many'
	@cat bin/kill-matrix 2>/dev/null || echo 'kill matrix: cached; $(GO) test -count=1 -v -run TestKillMatrix ./test/matrix says how many cases'
	@cat bin/peers 2>/dev/null || echo 'peers: cached; $(GO) test -count=1 -v -run TestPeersThatMisbehave ./test/peers says how many cases'
	@cat bin/histories 2>/dev/null || echo 'histories: cached; $(GO) test -count=1 -v -run TestRandomHistories ./test/histories says how many'
	@cat bin/mutants 2>/dev/null || echo 'mutants: cached; $(GO) test -count=1 -v ./test/mutants says which are found'
	@sed -n 's/^Guesses: /guesses: /p' docs/unverified.md

test-zfs: ## the ZFS driver on a real ZFS, if there is one here; as root, with a pool in a file
	SLEDCTL_REAL_ZFS=1 $(GO) test -count=1 -v -run TestRealZFS ./zfs

fuzz: ## each fuzz test for ten seconds; fails where one tries too few inputs to find anything
	$(GO) run ./test/fuzz

race: ## all tests under the race detector, but those that read our own texts or run the installer
	GORACE=atexit_sleep_ms=0 $(GO) test -race -vet=off -short -timeout 20m $(shell $(GO) list ./... | grep -vE '/(packaging|docs/.*|test/(bench|fuzz|layers|mutants|structure|voice))$$') # without it, each program that a test runs ends a second late

demo: build ## the story of a sled, told by the program itself
	@sh docs/demo.sh bin/sledctl

bench: build ## sledctl against its budgets, on this machine
	@$(GO) run ./test/bench bin/sledctl

lint: ## gofmt, go vet here and for a sled, staticcheck; test and race leave vet to it
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt -w . mends these'; exit 1; }
	$(GO) vet ./...
	GOOS=illumos $(GO) vet -trimpath ./... # as make cross builds it
	$(GO) tool -modfile=test/tools/go.mod staticcheck ./...

cross: ## for a sled and for a workstation
	GOOS=illumos GOARCH=amd64 $(BUILD) -o dist/sledctl-illumos-amd64 ./cmd/sledctl
	GOOS=linux GOARCH=amd64 $(BUILD) -buildmode=pie -o dist/sledctl-linux-amd64 ./cmd/sledctl

# The commit's time, not today's: the same commit gives the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
packages: ## what installs it on a sled, in dist: a tarball with an installer, one for IPS, and checksums
	$(GO) run ./packaging -version $(VERSION) -date $(SOURCE_DATE_EPOCH) -out dist

docs: ## the pages of the manual that the program knows itself, and what the code guesses
	$(GO) run ./docs/generate docs

pictures: build ## what an operator sees, as the manual shows it; the page of the agent needs a Chromium
	$(GO) run ./docs/pictures bin/sledctl docs/pictures
	SLEDCTL_SCREENSHOTS=$(CURDIR)/docs/pictures $(GO) test -count=1 -run TestThePageOfTheDrill ./commands

man: ## pages for man(1), of the date of the last commit: dist/man/man8
	$(GO) run ./docs/generate -man $(shell git log -1 --format=%cs 2>/dev/null || date +%F) dist/man/man8

# The parts of what takes longer than a test may. The three of own are apart, as each takes long.
SOAK := lattice matrix pairs commands histories ledger mutants rest fleet openzfs
own := TestLattice|TestKillMatrix|TestKillPairs
soak: $(addprefix soak-,$(or $(PART),$(SOAK))) ## what takes longer than a test may; PART=lattice, matrix, pairs, commands, histories, ledger, mutants, rest, fleet or openzfs is one of it
soak-lattice: what := -run '^TestLattice$$' ./test/lattice
soak-matrix: what := -run '^TestKillMatrix$$' ./test/matrix
soak-pairs: what := -run '^TestKillPairs$$' ./test/matrix
soak-commands: what := -skip '^($(own))$$' ./commands ./test/crowd ./test/lattice ./test/matrix ./test/peers
soak-histories: what := ./test/histories
soak-ledger: what := ./engine/ledger
soak-mutants: what := ./test/mutants
soak-rest: what = $(shell $(GO) list ./... | grep -vE '/(commands|histories|ledger|test/(crowd|lattice|matrix|mutants|peers))$$')
soak-fleet: fleet-servers # 500 histories of a fleet, on Kubernetes' own servers; before them 1,000 sleds with 10,000 VMs
	cd fleet && SLEDCTL_FLEET_SLEDS=1000 SLEDCTL_FLEET_VMS=10000 $(GO) test -count=1 -v -timeout 1h -run '^TestManySleds' ./e2e >../bin/soak-fleet 2>&1; was=$$?; \
	SLEDCTL_FLEET_HISTORIES=500 $(GO) test -count=1 -v -timeout 4h -run '^TestHistories' ./e2e >>../bin/soak-fleet 2>&1 || was=1; grep -vE '^ *(=== |--- PASS)' ../bin/soak-fleet; exit $$was
soak-openzfs: # the ZFS driver on a whole ZFS, in a virtual machine; as root
	@mkdir -p bin
	.ci/openzfs >bin/soak-openzfs 2>&1; was=$$?; grep -a -E '^( *--- |ok|FAIL|it exits)' bin/soak-openzfs; exit $$was
soak-%:
	@mkdir -p bin
	$(if $(what),,$(error no part $*: want $(SOAK)))
	SLEDCTL_SOAK=1 $(GO) test -count=1 -v -timeout 4h $(what) >bin/soak-$* 2>&1; was=$$?; grep -vE '^ *(=== |--- PASS)' bin/soak-$*; exit $$was

# How much of the simulated sled the product's tests reach: those of all other
# packages, those of the simulator against recorded answers of the real programs, and the scripts (some of
# which fail here: the programs that stand in for the host's commands are not told where to write).
reached: ## how much of sim/ the product's tests reach, and how the code is built; takes minutes
	@rm -rf bin/reached && mkdir -p bin/reached/scripts
	$(GO) build -cover -coverpkg=./cmd/sledctl,./sim/... -o bin/reached/sledctl ./cmd/sledctl
	-TEST_PROGRAM=$(CURDIR)/bin/reached/sledctl GOCOVERDIR=$(CURDIR)/bin/reached/scripts $(GO) test -count=1 -run '^TestScripts$$' ./commands
	$(GO) tool covdata textfmt -i=bin/reached/scripts -o bin/reached/scripts.out
	$(GO) test -count=1 -short -coverpkg=./sim/... -coverprofile=bin/reached/product.out $$($(GO) list ./... | grep -vE '/sim(/|$$)|/test/mutants$$') >bin/reached/said || { cat bin/reached/said; exit 1; }
	$(GO) test -count=1 -coverpkg=./sim/... -coverprofile=bin/reached/samples.out -run 'Sample|Recorded|AsTheRealOne' ./sim/... >/dev/null
	@cat bin/reached/*.out >bin/reached/profile
	@$(GO) run ./test/structure -reached bin/reached/profile

# The fleet is a module of its own, so that what it needs of Kubernetes stays out of sledctl.
fleet-unit: ## the module of many sleds: vetted, tested, and built for this machine and for a sled
	cd fleet && $(GO) mod verify && $(GO) vet ./...
	cd fleet && $(GO) test -timeout 10m $$($(GO) list ./... | grep -v /e2e)
	cd fleet && $(GO) build -ldflags '$(LDFLAGS)' -o ../bin/sledctl-fleet ./cmd/sledctl-fleet # without -trimpath, which has all of Kubernetes built once more
	cd fleet && GOOS=illumos GOARCH=amd64 $(GO) build -ldflags '$(LDFLAGS)' -o ../dist/sledctl-fleet-illumos-amd64 ./cmd/sledctl-fleet

fleet-servers: ## etcd, Kubernetes' servers and kubectl, in bin/servers: minutes, when it is the first time
	@mkdir -p bin/servers
	cd fleet/e2e/kube && $(GO) build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)" -o ../../../bin/servers/ tool
	ln -f bin/servers/server bin/servers/etcd

fleet-test: ## stories of a fleet, on the servers that fleet-servers builds
	cd fleet && SLEDCTL_FLEET_SEED=$${SLEDCTL_FLEET_SEED:-1} $(GO) test -count=1 -v -timeout 25m ./e2e

fleet-generate: ## what is made of the fleet's objects: their definitions, and how they are copied
	cd fleet && sh api/generate.sh

clean:
	rm -rf bin dist
