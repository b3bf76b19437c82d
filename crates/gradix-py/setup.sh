#!/bin/sh
# Makes crates/gradix-py/.venv with the package, built from here, and what its tests and examples need.
# PyTorch is installed where there is a package without CUDA, which is several gigabytes smaller; its tests are skipped,
# visibly, where there is none. `--release` builds as for users, which takes longer and runs faster.
set -eu
cd "$(dirname "$0")"

profile=dev
[ "${1:-}" = --release ] && profile=release

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'error: Python 3.11 or later is needed' >&2; exit 1; }
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements-test.txt

if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) index='--index-url https://download.pytorch.org/whl/cpu --retries 0 --timeout 10' ;;
        *) index='' ;;
    esac
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet --disable-pip-version-check $index torch >/dev/null 2>&1 ||
        echo 'note: there is no PyTorch without CUDA to be had; what needs it is skipped'
fi

rm -rf ../../target/wheels
.venv/bin/maturin build --quiet --profile "$profile" --interpreter .venv/bin/python --out ../../target/wheels
.venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps ../../target/wheels/gradix-*.whl
