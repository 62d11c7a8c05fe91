# The binary that is run or measured, and the processes of a fleet in $dir: dispatcher-1…, worker-1….
# Sourced, not run.
#
# $dir/run holds, for each, a record (`<name>.pid`) and where it listens (`<name>.address`);
# $dir/<name> is its own data directory, $dir/log/<name>.log its log.

# Sets $binary. STEPFLEET_BIN names one that is built already.
find_binary() {
    binary="${STEPFLEET_BIN:-}"
    if [ -z "$binary" ]; then
        need_build_tools
        [ -x "$CARGO_TARGET_DIR/debug/stepfleet" ] ||
            say "building into $CARGO_TARGET_DIR: the first time takes about twenty minutes on two cores, nearly all of it for LanceDB; after that, seconds"
        # --locked: exactly the dependencies that were tested.
        (cd "$root" && cargo build --locked --package stepfleet) || die "stepfleet does not build"
        binary="$CARGO_TARGET_DIR/debug/stepfleet"
    fi
    [ -x "$binary" ] || die "$binary cannot be run; unset STEPFLEET_BIN, or set it to a built stepfleet"
    binary="$(realpath "$binary")"
}

# members <kind>: the names there have been, in order.
members() {
    find "$dir/run" -name "$1-*.pid" -printf '%f\n' 2>/dev/null | sed 's/\.pid$//' | sort -V
}

member() { recorded "$dir/run/$1.pid"; }

address_of() { cat "$dir/run/$1.address" 2>/dev/null; }

# What every process of the fleet is told; a process's own variables come on top.
fleet_environment() {
    cat "$dir/env"
    # One machine and one user: as with `ops/up`, its own addresses may be called.
    printf '%s\n' "STEPFLEET_HISTORY_URI=$dir/history" \
        "STEPFLEET_ALLOW_PRIVATE=${STEPFLEET_ALLOW_PRIVATE:-true}"
}

# run_stepfleet <name> <arguments>...: a command of stepfleet as a part of this fleet.
run_stepfleet() {
    local name="$1" variables
    shift
    mapfile -t variables < <(fleet_environment)
    (
        export "${variables[@]}" "STEPFLEET_DATA_DIR=$dir/$name"
        cd "$(setting WORKING_DIR)" && "$binary" "$@"
    )
}

# The address it had if that is free, else another port: clients and scrapers keep theirs.
choose_address() {
    local address wanted="${2:-}" port
    address="${wanted:-$(address_of "$1")}"
    if [ -z "$address" ] || { [ -z "$wanted" ] && port_taken "${address##*:}"; }; then
        port="$(free_port)" || exit
        address="127.0.0.1:$port"
    fi
    echo "$address" >"$dir/run/$1.address"
}

# start_member <dispatcher|worker> <name> [address]
start_member() {
    local kind="$1" name="$2" variables listen=STEPFLEET_LISTEN
    member "$name" >/dev/null && return
    mkdir -p "$dir/run" "$dir/$name"
    choose_address "$name" "${3:-}"
    [ "$kind" = dispatcher ] || listen=STEPFLEET_WORKER_LISTEN
    mapfile -t variables < <(fleet_environment)
    (
        # Not as arguments, which everybody on the machine can read.
        export "${variables[@]}" "STEPFLEET_TOKEN=$(cat "$dir/token")" "STEPFLEET_DATA_DIR=$dir/$name" \
            "$listen=$(address_of "$name")"
        launch "$dir/run/$name.pid" "$dir/log/$name.log" "$(id -un)" "$(setting WORKING_DIR)" "$binary" "$kind"
    )
}

# Until it answers its probe.
await_member() {
    local name="$1" i
    for ((i = 0; i < 600; i++)); do
        if ! member "$name" >/dev/null; then
            failed_with "$name" "$name ended instead of starting"
        fi
        ! probe "$name" >/dev/null || return 0
        sleep 0.1
    done
    failed_with "$name" "$name runs, but does not answer at http://$(address_of "$name")/health after 60 s"
}

probe() { curl -fsS --max-time 2 "http://$(address_of "$1")/health" 2>/dev/null; }

# health_of <name>: its own word for it.
health_of() {
    local word
    word="$(probe "$1" | grep -o '"status" *: *"[a-z]*"' | head -n 1 | cut -d'"' -f4)"
    echo "${word:-no answer}"
}

# A dispatcher says ok once every shard has an owner.
await_shards() {
    local i
    for ((i = 0; i < 300; i++)); do
        [ "$(health_of dispatcher-1)" != ok ] || return 0
        sleep 0.1
    done
    say "not all parts are well after 30 s; \`ops/fleet status\` and http://$(address_of dispatcher-1)/health say which"
}

# stop_members <name>...: all are asked at once to hand over and end, and get a minute for it.
stop_members() {
    local name pid
    for name in "$@"; do
        pid="$(member "$name")" && kill -CONT "$pid" && kill -TERM "$pid"
    done
    for name in "$@"; do
        # Not asked twice: a second signal means at once.
        if pid="$(member "$name")" && ! until_gone "$pid" 600; then
            say "$name has not ended after a minute; it is killed"
            signal_tree KILL "$pid"
        fi
        rm -f "$dir/run/$name.pid"
    done
}
