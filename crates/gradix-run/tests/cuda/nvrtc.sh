#!/usr/bin/env bash
# Prints where NVIDIA's run-time compiler is, from its Python package; gets that first where it is missing. It needs no GPU.
set -euo pipefail
folder=${1:?a folder}
find_library() { find "$folder" -name 'libnvrtc.so.*' 2>/dev/null | head -n 1; }
if [ -z "$(find_library)" ]; then
    # A download that breaks off leaves nothing behind.
    trap 'rm -rf "$folder.part"' EXIT
    rm -rf "$folder.part" "$folder"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$folder.part" \
        'nvidia-cuda-nvrtc-cu12>=12.4' >&2
    mv "$folder.part" "$folder"
fi
find_library
