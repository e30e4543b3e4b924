# SPDX-License-Identifier: Apache-2.0
# Sourced by demo and check: installs what is missing, configures, builds. Says what it does;
# does nothing twice.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        die "installing packages needs root: become root or install sudo, then run this again"
    fi
}

# need PACKAGE...: installs the Debian packages that are not there yet.
need() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    command -v apt-get > /dev/null ||
        die "this script knows Debian and its children only; install these by hand: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" > /dev/null || die "apt-get could not install ${missing[*]}"
}

build_packages=(gcc g++ libc6-dev cmake ninja-build pkg-config curl ca-certificates
    libsodium-dev libxxhash-dev libcjson-dev zlib1g-dev libopenblas-dev libdnnl-dev libhwloc-dev
    libcmocka-dev libibverbs-dev libucx-dev help2man)

progress_seconds=10 # between two lines of a build whose output is no terminal

# Reads ninja's lines and shows the latest of them every progress_seconds.
show_progress() {
    local line latest="" shown=$SECONDS
    while read -r -t 1 line || [ $? -gt 128 ]; do # above 128: no line within this second
        latest=${line:-$latest}
        [ $((SECONDS - shown)) -lt "$progress_seconds" ] && continue
        printf '  %s\n' "$latest"
        shown=$SECONDS
    done
}

# build DIR [cmake option...] [-- target...]: configures, and builds what changed of the targets, or of
# all of them. On a terminal ninja shows its progress and its errors itself.
build() {
    local dir=$1 options=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
    shift $(($# > 0))
    say "building in $dir"
    cmake -S "$root" -B "$root/$dir" -G Ninja "${options[@]}" > "$root/$dir.log" 2>&1 ||
        { cat "$root/$dir.log"; die "cmake failed"; }
    sed -n '/^-- libring/,/^$/p' "$root/$dir.log"
    if [ -t 1 ]; then
        ninja -C "$root/$dir" "$@" || die "the build failed"
        return
    fi
    ninja -C "$root/$dir" "$@" 2>&1 | tee -a "$root/$dir.log" | show_progress ||
        { grep -E 'error|FAILED|warning|^ninja: ' -A3 "$root/$dir.log" | tail -n 60; die "the build failed; see $dir.log"; }
}

# install_torch: a virtual environment with torch in build/torch; sets RING_PYTHON.
install_torch() {
    local folder=$root/build/torch
    need python3-dev python3-venv
    RING_PYTHON=$folder/bin/python
    [ -f "$folder/complete" ] && return
    say "installing torch in build/torch"
    python3 -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check \
        torch==2.13.0 numpy expecttest setuptools wheel && touch "$folder/complete" ||
        die "pip could not install torch in build/torch; set RING_PYTHON to a Python that has torch, numpy and expecttest"
}

# install_cuda: the compiler of GPU kernels in build/cuda, unless there is one. Without it they are left
# out, and all else is built.
install_cuda() {
    local folder=$root/build/cuda
    [ -f "$folder/complete" ] || command -v nvcc > /dev/null || [ -x /usr/local/cuda/bin/nvcc ] && return
    need python3-venv
    say "installing the compiler of GPU kernels in build/cuda"
    python3 -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check \
        nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
        nvidia-cuda-runtime==13.0.88 && touch "$folder/complete" ||
        say "pip could not install it: GPU kernels are left out (see 'CUDA' in the summary below)"
}
