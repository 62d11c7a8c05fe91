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

# install_packages <Debian package>...
install_packages() {
    command -v apt-get >/dev/null || return 1
    apt_get install -y --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    # A fresh machine has no package lists yet.
    apt_get update >/dev/null 2>&1 && apt_get install -y --no-install-recommends "$@" >/dev/null
}

# need_if <check> <Debian package>...: installs the packages unless the check holds.
need_if() {
    local check="$1"
    shift
    eval "$check" >/dev/null 2>&1 && return 0
    say "installing $*"
    install_packages "$@" || true
    hash -r
    eval "$check" >/dev/null 2>&1 ||
        die "this needs $*, and cannot install it from here; install it (Debian: apt-get install $*) and run this again"
}

# need <command to look for> <Debian package>...
need() { need_if "command -v $1" "${@:2}"; }

# A foreign client of the broker: Python's, with the library as Debian has it.
need_pika() { need_if "/usr/bin/python3 -c 'import pika'" python3 python3-pika; }

need_rust() {
    command -v cargo >/dev/null || PATH="$HOME/.cargo/bin:$PATH"
    command -v cargo >/dev/null || die "a Rust toolchain is missing (1.95 or newer, from rustup)"
}

need_build_tools() {
    need_rust
    need cc gcc libc6-dev
    # The file formats of LanceDB are compiled from .proto files; some of those they import come apart from
    # the compiler.
    need_if "protoc -o /dev/null google/protobuf/empty.proto" protobuf-compiler libprotobuf-dev
}
