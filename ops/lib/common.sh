# What `ops/up` and `ops/test` share: where things are built, and what the build needs.
# Sourced, not run.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

# Outside the checkout, so that several checkouts and a cleaned one share what is built. Both
# scripts build with one profile: LanceDB is compiled once for both.
export CARGO_TARGET_DIR="${STEPFLEET_TARGET_DIR:-${CARGO_TARGET_DIR:-$HOME/.cache/stepfleet/target}}"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# Asks nothing, and waits when another installation is under way.
apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@"
}

# need <command to look for> <Debian package>...
need() {
    local command="$1"
    shift
    command -v "$command" >/dev/null && return 0
    say "installing $* ($command is missing)"
    if command -v apt-get >/dev/null; then
        if apt_get install -y --no-install-recommends "$@" >/dev/null 2>&1; then
            return 0
        fi
        # A fresh machine has no package lists yet.
        if apt_get update >/dev/null 2>&1 &&
            apt_get install -y --no-install-recommends "$@" >/dev/null; then
            return 0
        fi
    fi
    die "$command is missing and cannot be installed from here; install it (Debian: apt-get install $*) and run this again"
}

# A foreign client of the broker: Python's, with the library as Debian has it.
need_pika() {
    has_pika || install_pika || { apt_get update >/dev/null 2>&1 && install_pika; } || true
    has_pika || die "pika is missing for /usr/bin/python3; install it (Debian: apt-get install python3-pika)"
}
has_pika() { /usr/bin/python3 -c 'import pika' 2>/dev/null; }
install_pika() { apt_get install -y --no-install-recommends python3 python3-pika >/dev/null 2>&1; }

need_rust() {
    command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null || die "a Rust toolchain is missing (1.95 or newer, from rustup)"
}

need_build_tools() {
    need_rust
    need cc gcc libc6-dev
    # The file formats of LanceDB are compiled from .proto files.
    need protoc protobuf-compiler
}
