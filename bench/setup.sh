#!/bin/sh
# Creates bench/.venv with what the benchmark needs, and the peers that are light to install.
# With --torch also PyTorch: without CUDA where its own package index can be reached, and otherwise the package
# of PyPI, which brings several gigabytes of CUDA libraries along.
set -eu
cd "$(dirname "$0")"

[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --requirement requirements.txt

if [ "${1:-}" = --torch ]; then
    .venv/bin/pip install --quiet --requirement requirements-torch.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu
fi
