# Short names for what is done by cargo and, for the benchmarks, by Python.

.PHONY: test test-rust test-python index-sets random-programs sanitize emulate-cuda test-cuda test-cuda-python nvrtc lint msrv package book typeset bench compare survey growth bench-compiler bench-gpu bench-python bench-loops bench-functions fuzz

# All tests: unit tests, case files, random programs, examples, documentation, and the Python package.
test: test-rust test-python

test-rust:
	cargo test --workspace

# Makes a virtual environment with the package and what its tests need.
test-python:
	crates/gradix-py/setup.sh
	cd crates/gradix-py && .venv/bin/python -m pytest

# A million random systems through `gather`, and a tenth of that through everything else that solves or drops constraints.
index-sets:
	GRADIX_SYSTEMS=1000000 cargo test --release -p gradix --test index_sets -- --nocapture gather
	GRADIX_SYSTEMS=100000 cargo test --release -p gradix --test index_sets -- --nocapture --skip gather

# Tens of thousands of random programs with floors and others.
random-programs:
	GRADIX_SEED=100000 GRADIX_COUNT=20000 cargo test --release -p gradix-run --test random_programs -- --nocapture

# Emitted C with GCC's sanitizers: all examples with their gradients, and 300 random programs with theirs; the tests have a few of
# each. Then the crates without foreign code under Miri, where it is installed (`rustup component add miri --toolchain nightly`).
sanitize:
	GRADIX_COUNT=100 cargo test -p gradix-run --test interface clean
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
		MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p gradix-int --lib && \
		MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p gradix --lib program::; \
	else echo 'note: Miri is not installed, and nothing ran under it'; fi

# Kernels for GPUs, run on the processor: all examples in both types, all cases of derivatives and 300 random programs, where the
# tests have a few of each; the examples also under GCC's AddressSanitizer. A quarter of an hour.
emulate-cuda:
	GRADIX_EMULATED=all cargo test -p gradix-run --test backends gpu

# The same on the machine's own GPU; what is compared bit by bit runs twenty times.
test-cuda:
	GRADIX_GPU=device GRADIX_EMULATED=all cargo test -p gradix-run --test backends gpu

# PyTorch, JAX and CuPy on the machine's own GPU, as far as $(PYTHON) has them, which also has gradix and pytest.
PYTHON = python3
test-cuda-python:
	cd crates/gradix-py && $(PYTHON) -m pytest device_tests

# All examples, compiled by NVIDIA's compiler, which is a download of 217 MB the first time and needs no GPU.
nvrtc:
	GRADIX_FETCH_NVRTC=1 cargo test -p gradix-run --test nvrtc

# What the continuous integration asks for besides.
lint: package
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# All crates with the oldest compiler that Cargo.toml promises.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup toolchain list | grep -q '^$(MSRV)' || rustup toolchain install $(MSRV) --profile minimal
	CARGO_TARGET_DIR=target/msrv cargo +$(MSRV) check --workspace

# The crates as they would be published; `cargo package` without the option builds them, too.
package:
	cargo package --workspace --exclude gradix-py --no-verify --allow-dirty --quiet

# The documentation as a site, in target/book: README and docs, whose links to files outside become plain text.
# The first time takes some minutes, for mdBook is built.
book:
	[ -x target/tools/bin/mdbook ] || cargo install --locked --root target/tools mdbook
	rm -rf target/book-source && mkdir -p target && cp -r docs target/book-source
	perl -pe 's,\]\(docs/,](,g' README.md > target/book-source/index.md
	perl -pi -e 's,(?<!!)\[([^]]*)\]\((?:\.\./|crates/|examples/|CHANGELOG|LICENSE)[^)]*\),$$1,g' target/book-source/*.md
	target/tools/bin/mdbook build

# The mathematics of all examples and their derivatives, typeset by KaTeX into target/typeset/index.html.
typeset:
	npm ci --prefix typeset --silent
	cargo build -p gradix-cli
	node typeset/typeset.mjs target/debug/gradix examples target/typeset

# Ten workloads beside other tools; writes docs/benchmarks.md. `bench/setup.sh --torch` adds PyTorch first.
bench:
	cargo build --release
	bench/setup.sh
	bench/.venv/bin/python bench/run.py

# This tree beside another binary, as in `make compare BEFORE=../other/target/release/gradix`; writes target/compare.md.
# A quarter of an hour on an idle machine. `bench/compare.py` has parts of it, and --first and --lines besides.
compare:
	cargo build --release
	python3 bench/compare.py --before $(BEFORE) --output target/compare.md

# Every program beside the least that it could take, and beside JAX; writes docs/survey.md.
survey:
	cargo build --release -p gradix-cli
	bench/setup.sh
	bench/.venv/bin/python bench/survey/survey.py --fresh

# How time grows with sizes and programs; writes docs/growth.md.
growth:
	cargo build --release
	bench/setup.sh
	bench/.venv/bin/python bench/growth.py

# The ten workloads on a GPU, beside the PyTorch of $(PYTHON).
bench-gpu:
	cargo build --release -p gradix-cli
	$(PYTHON) bench/gpu.py

# How fast the compiler itself is.
bench-compiler:
	cargo bench -p gradix

# Eight loops over time beside C by hand and JAX, and how time grows with the steps; writes docs/benchmarks-loops.md.
bench-loops:
	cargo build --release -p gradix-cli
	bench/setup.sh
	bench/.venv/bin/python bench/run.py --suite loops

# What a call from Python costs besides the computation; writes docs/benchmarks-python.md.
bench-python:
	cargo build --release
	crates/gradix-py/setup.sh --release
	crates/gradix-py/.venv/bin/python bench/python_calls.py

# The elementary functions of emitted C beside glibc's vector library.
bench-functions:
	cargo build --release -p gradix-cli
	python3 bench/functions.py f64
	python3 bench/functions.py f32

# Five minutes for each fuzz target, from the examples on, recurrences among them. Needs `cargo install cargo-fuzz`; the
# variable lets a stable compiler do it.
fuzz:
	mkdir -p fuzz/corpus/parse fuzz/corpus/derive
	RUSTC_BOOTSTRAP=1 cargo fuzz run parse fuzz/corpus/parse examples -- -dict=fuzz/gradix.dict -max_total_time=300
	RUSTC_BOOTSTRAP=1 cargo fuzz run derive fuzz/corpus/derive examples -- -dict=fuzz/gradix.dict -max_total_time=300
