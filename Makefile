# Everything is done by cargo; these are short names for it.

.PHONY: test lint bench fuzz

# All tests: unit tests, case files, random programs, examples, documentation.
test:
	cargo test --workspace

# What the continuous integration asks for besides.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# How fast the tool itself is.
bench:
	cargo bench -p gradix

# Five minutes for each fuzz target. Needs `cargo install cargo-fuzz`; the variable lets a stable compiler do it.
fuzz:
	RUSTC_BOOTSTRAP=1 cargo fuzz run parse -- -dict=fuzz/gradix.dict -max_total_time=300
	RUSTC_BOOTSTRAP=1 cargo fuzz run derive -- -dict=fuzz/gradix.dict -max_total_time=300
