# Everything is set up in .venv and target/; nothing is installed outside this folder.
# `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Property tests draw the same cases every time; `make test PROPTEST_RNG_SEED=2` draws others.
export PROPTEST_RNG_SEED ?= 1
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help site workflows run test test-fast fast-rust fast-python test-setup rust-tests wheel header libsilvan install-libsilvan check-slow check-memory check-threads \
	check-nightly check-drawn check-diagnose check-twin check-tools check-verbs check-fuzz check-mutants audit audit-python check-reproducible check-site coverage check-rows check-papers pages format lint reference viewer figures lock install system versions changelog release rehearsal release-setup clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: install ## Set up, and reproduce Table II of gran2012
	$(BIN)/silvan reproduce gran2012 --only table2

# While the engine is optimised, which takes one core, the Rust tests are compiled on the others.
test: system ## Set up, and run all tests (Python's line coverage is printed)
	@$(MAKE) --no-print-directory --jobs 2 test-setup rust-tests
	cargo test --workspace --locked -- $$($(PYTHON) python/tools/system_packages.py --rust)
	$(PYTEST) -m "not nightly" $(COVERAGE)

# The Rust tests of the modules `tshark` and `served` call a Debian program.
test-fast: test-setup ## Run the tests that need neither root, Debian packages nor network (1 minute)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync fast-rust fast-python

fast-rust:
	$(OWN_JOBS) cargo test --workspace --locked --lib --tests -- $(NO_PROGRAMS)

fast-python:
	$(PYTEST) -m "not slow and not needs and not nightly"

test-setup: $(VENV)/test.stamp install

rust-tests:
	$(OWN_JOBS) cargo test --workspace --locked --no-run

# Cargo would share the two jobs of `make --jobs 2`; it has one for each core.
OWN_JOBS := MAKEFLAGS= MFLAGS=

# More processes than cores, since many tests wait; `make test PROCESSES=0` runs all tests in one.
PROCESSES ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 1)")
PYTEST := $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal

# Of what runs in the tests' own process; a tracer in other processes would count among their system calls. And what takes longest.
COVERAGE := --cov=silvan --cov=silvan_papers --cov-report=term:skip-covered --durations=20

# The tests call programs that come with no Python package: requirements/debian.txt lists them.
system: ## Install the programs that the tests call (as root), or say how
	@$(PYTHON) python/tools/system_packages.py

# The checks that take minutes to hours. Where a cargo command is missing, this is said; where CI is set it fails.
check-slow: check-nightly check-memory check-threads check-drawn check-fuzz check-mutants ## Nightly tests, sanitizers, other drawn cases, fuzzing, mutants

check-nightly: system test-setup ## Run the tests that compile a changed copy or take minutes
	$(PYTEST) -m nightly

# Without debug assertions the engine's tables are indexed without a check; AddressSanitizer sees what then
# goes beyond them. RUSTC_BOOTSTRAP lets the stable compiler take the flag.
check-memory: ## Run the engine's tests as released, under AddressSanitizer (TESTS=name for some)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --release --locked \
		-p silvan-engine -p silvan-reference --tests \
		--target $$(rustc -vV | sed -n 's/^host: //p') $(TESTS)

# tests/interleavings.rs has threads of its own kind, which the sanitizer does not know.
check-threads: ## Run the engine's tests as released, under ThreadSanitizer (TESTS=name for some)
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/thread-sanitizer.txt" RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 \
		RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" cargo test --release --locked \
		-p silvan-engine --lib --test behaviour --target-dir target/threads \
		--target $$(rustc -vV | sed -n 's/^host: //p') $(TESTS)

SEEDS ?= 2 3 4 5 6 7 8
check-drawn: ## Run the property tests of Rust on other cases (SEEDS="9 10")
	for seed in $(SEEDS); do \
		PROPTEST_RNG_SEED=$$seed cargo test --workspace --locked --lib --tests -- $(NO_PROGRAMS) || exit 1; \
	done

NO_PROGRAMS := --skip tshark:: --skip served::
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
# The second range of seeds was drawn when the thresholds of the diagnosis were fixed.
check-diagnose: ## Print how often the diagnosis of drawn live fabrics is right (20 minutes)
	cargo run --quiet --release --locked -p silvan-emulator --example check_diagnose -- 1 200 20261125001 40

TWINS ?= 1 200
check-twin: install ## Print how well twins of drawn live fabrics agree with them (hours; TWINS="1 20" for some)
	$(BIN)/python python/tools/check_twin.py $(TWINS) live
	$(BIN)/python python/tools/check_twin.py $(TWINS) off history

check-tools: install ## Print which programs see what the live fabric has; needs opensm, infiniband-diags, ibverbs-utils
	$(BIN)/python python/tools/check_tools.py

check-verbs: install ## Compare numbers of perftest, UCX and MPI in a live fabric with the model (5 minutes)
	$(BIN)/python python/tools/check_verbs.py

check-fuzz: install ## Fuzz each reader (FUZZ_SECONDS=60, FUZZ_TARGETS="mad ring"); needs a C++ compiler
	$(BIN)/python python/tools/fuzz.py --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

audit: audit-python ## Look for known vulnerabilities in the pinned crates and Python packages; needs network
	@$(call with-cargo,deny,,cargo deny check)

audit-python: release-setup
	for file in run test site release system; do \
		$(VENV)/release/bin/pip-audit --strict --no-deps --disable-pip --requirement requirements/$$file.txt || exit 1; done

coverage: ## Print the line coverage of the Rust tests; needs cargo-llvm-cov
	@$(call with-cargo,llvm-cov,,cargo llvm-cov --workspace --locked --summary-only)

MUTANTS ?= -p silvan-cc -p silvan-engine
check-mutants: ## Change cc and engine in small ways, and see that a test fails (hours); needs cargo-mutants
	@$(call with-cargo,mutants,,cargo mutants $(MUTANTS) --output target)

# The third argument is run if `cargo $(1)` exists; otherwise what is missing is said, and fails where CI is set.
with-cargo = if cargo $(2) $(1) --version >/dev/null 2>&1; then $(3); \
	else echo "not run: $@ needs cargo-$(1): cargo install cargo-$(1)"; test -z "$$CI"; fi

check-rows: install ## Run the cheap experiments of each paper, and compare with the record (1 minute; RECORD=1 rewrites these rows)
	$(BIN)/python python/tools/check_rows.py $(if $(RECORD),--record)

check-papers: install ## Run all papers in full, and compare with the record (RECORD=1 rewrites it)
	$(BIN)/python python/tools/check_papers.py $(if $(RECORD),--record)

pages: install ## Write what check-papers has measured and drawn into the documents
	$(BIN)/python python/tools/reproduction_page.py out

# Modules that the lists of schemes, routing algorithms, trace formats and collective algorithms declare.
REGISTERED := $(wildcard crates/silvan-cc/src/schemes/*.rs crates/silvan-cc/src/schemes/*/mod.rs crates/silvan-fabric/src/routing/*.rs \
	crates/silvan-workload/src/programs/trace/*.rs crates/silvan-workload/src/programs/trace/*/mod.rs crates/silvan-workload/src/programs/collective/*.rs)

format: $(VENV)/test.stamp ## Format all code
	cargo fmt --all
	rustfmt --edition 2024 $(REGISTERED) # cargo does not see them
	$(BIN)/ruff format

lint: $(VENV)/test.stamp install ## Check format, types, stubs, documents
	cargo fmt --all --check
	rustfmt --edition 2024 --check $(REGISTERED) # cargo does not see them
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest silvan._silvan
	$(BIN)/lint-imports --no-cache
	$(BIN)/python python/tools/check_documents.py
	git ls-files -z | xargs -0 $(BIN)/codespell
	$(BIN)/python python/tools/generate_reference.py --check
	$(BIN)/python python/tools/viewer_digest.py

# A header that is not what the sources give fails a test.
header: ## Generate the C header from crates/silvan-capi
	cargo run --quiet --locked -p silvan-capi --example header > target/silvan.h
	cp target/silvan.h crates/silvan-capi/include/silvan.h

libsilvan: ## Build the C library (target/release/libsilvan.so and .a)
	cargo build --release --locked -p silvan-capi
	ln -sf libsilvan.so target/release/libsilvan.so.$(MAJOR)

VERSION_NOW = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
MAJOR = $(firstword $(subst ., ,$(VERSION_NOW)))
PREFIX ?= /usr/local
install-libsilvan: libsilvan ## Install the C library and its header (PREFIX=/usr/local, DESTDIR=)
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 crates/silvan-capi/include/silvan.h $(DESTDIR)$(PREFIX)/include
	install -m 755 target/release/libsilvan.so $(DESTDIR)$(PREFIX)/lib/libsilvan.so.$(VERSION_NOW)
	ln -sf libsilvan.so.$(VERSION_NOW) $(DESTDIR)$(PREFIX)/lib/libsilvan.so.$(MAJOR)
	ln -sf libsilvan.so.$(MAJOR) $(DESTDIR)$(PREFIX)/lib/libsilvan.so
	install -m 644 target/release/libsilvan.a $(DESTDIR)$(PREFIX)/lib
	sed -e 's|@PREFIX@|$(or $(PREFIX),$${pcfiledir}/../..)|' -e 's|@VERSION@|$(VERSION_NOW)|' \
		crates/silvan-capi/silvan.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/silvan.pc

reference: install ## Generate the reference pages
	$(BIN)/python python/tools/generate_reference.py

lock: ## Pin the Python dependencies
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet pip-tools
	$(VENV)/lock/bin/pip-compile $(LOCK) --all-extras --output-file requirements/run.txt pyproject.toml requirements/build.in
	$(VENV)/lock/bin/pip-compile $(LOCK) --extra figures --extra live --constraint requirements/run.txt --output-file requirements/system.txt pyproject.toml
	$(VENV)/lock/bin/pip-compile $(LOCK) --constraint requirements/run.txt --output-file requirements/build.txt requirements/build.in
	$(VENV)/lock/bin/pip-compile $(LOCK) --output-file requirements/test.txt requirements/test.in
	$(VENV)/lock/bin/pip-compile $(LOCK) --output-file requirements/site.txt requirements/site.in
	$(VENV)/lock/bin/pip-compile $(LOCK) --output-file requirements/release.txt requirements/release.in

LOCK := --quiet --generate-hashes --no-strip-extras --no-header --no-emit-index-url \
	--no-emit-trusted-host --no-emit-find-links --allow-unsafe --resolver backtracking

# The extension is built in place, so that edited Python code needs no new install; cargo knows what
# of the Rust code has changed.
install: $(VENV)/run.stamp
	$(OWN_JOBS) PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet --release --locked

$(VENV)/run.stamp: requirements/run.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement $<
	touch $@

$(VENV)/test.stamp: requirements/test.txt $(VENV)/run.stamp
	$(PIP) install --require-hashes --requirement $<
	touch $@

# The newest wheel is checked as a user meets it: installed without a compiler, away from this folder.
PROFILE ?= dist
# A release needs maturin alone of what a run has.
MATURIN = $(firstword $(wildcard $(BIN)/maturin) $(VENV)/build/bin/maturin)
WITH_MATURIN := $(if $(wildcard $(VENV)/run.stamp),,$(VENV)/build.stamp)
wheel: $(WITH_MATURIN) ## Build wheel and sdist into target/wheels, and try the wheel (PROFILE=release is quicker)
	rm -rf target/wheels
	$(MATURIN) build --quiet --profile $(PROFILE) --locked --strip --out target/wheels
	$(MATURIN) sdist --out target/wheels 2>/dev/null
	$(PYTHON) python/tools/check_wheel.py target/wheels/silvan-*.whl

$(VENV)/build.stamp: requirements/build.txt
	$(PYTHON) -m venv $(VENV)/build
	$(VENV)/build/bin/pip install --quiet --require-hashes --requirement $<
	touch $@

# Both builds have the path of this checkout, which debug information would name.
check-reproducible: $(WITH_MATURIN) ## Build the wheel twice in fresh folders, and compare the two (PROFILE=release is quicker)
	for number in 1 2; do \
		rm -rf target/twice && SOURCE_DATE_EPOCH=$$(git show --no-patch --format=%ct HEAD) CARGO_TARGET_DIR=target/twice \
			$(MATURIN) build --quiet --profile $(PROFILE) --locked --strip --out target/twice-$$number || exit 1; done
	$(PYTHON) python/tools/same_wheel.py target/twice-1/*.whl target/twice-2/*.whl

versions: ## Write the version of Cargo.toml into all files that state it
	$(PYTHON) python/tools/versions.py

changelog: ## Move the fragments of changes/ into CHANGELOG.md (VERSION=1.1.0)
	$(PYTHON) python/tools/changelog.py $(VERSION)

# It publishes nothing. `make release CHECK=1` only checks.
release: release-setup ## Check, build and tag a release, and print how to publish it (VERSION=1.1.0)
	$(VENV)/release/bin/python python/tools/release.py $(VERSION) $(if $(CHECK),--check)

rehearsal: release-setup ## Build the files of a release, and try them from an index on this machine (SOURCE=1: the sdist, too)
	$(VENV)/release/bin/python python/tools/release.py $(VERSION_NOW) --rehearse
	$(VENV)/release/bin/python python/tools/rehearsal.py $(if $(SOURCE),--source)

release-setup: $(VENV)/release.stamp

$(VENV)/release.stamp: requirements/release.txt
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/pip install --quiet --require-hashes --requirement $<
	touch $@

# MkDocs counts no warnings, and so fails on none, with --quiet.
site: test-setup $(VENV)/site.stamp ## Build the documentation site into target/site; every warning is an error
	rm -rf target/site-pages
	$(BIN)/python python/tools/gallery.py target/site-pages
	$(BIN)/python python/tools/notebooks.py target/site-pages
	$(BIN)/python python/tools/view_example.py target/site-pages
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build

$(VENV)/site.stamp: requirements/site.txt $(VENV)/run.stamp
	$(PYTHON) -m venv $(VENV)/site
	$(VENV)/site/bin/pip install --quiet --require-hashes --requirement $<
	touch $@

check-site: site ## Open all pages of the site in Chromium: links, scripts, size, phone, axe
	$(BIN)/python python/tools/check_site.py

# What is built is committed, so that users need no npm to install silvan (docs/decisions/0026-the-viewer.md).
viewer: ## Build the browser page from viewer/ into python/silvan/viewer/assets; needs npm
	cd viewer && npm ci --no-audit --no-fund && npm run check && npm test && npm run build
	$(PYTHON) python/tools/viewer_digest.py --write

figures: $(VENV)/test.stamp install ## Measure the browser page against its goals (ARGUMENTS="--large --cost")
	$(BIN)/python python/tools/viewer_figures.py $(ARGUMENTS)

ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
workflows: ## Check the GitHub workflows with actionlint; needs Go
	GOBIN=$(CURDIR)/target/go go install $(ACTIONLINT)
	target/go/actionlint

clean: ## Remove everything that was built or written
	rm -rf $(VENV) target out
