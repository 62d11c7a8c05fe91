# What PostgreSQL and RabbitMQ have in common as private servers in $dir. Sourced by
# `ops/services`, not run.

# install_quietly <command> <Debian package>: the package without a service of the system.
install_quietly() {
    local policy=/usr/sbin/policy-rc.d ours="" verdict=0
    command -v "$1" >/dev/null && return
    # Debian asks this file whether an installed service may start.
    if [ ! -e "$policy" ]; then
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy" && ours=yes
    fi
    (need "$@") || verdict=$?
    [ -z "$ours" ] || as_root rm -f "$policy"
    # Nor at the next boot.
    [ ! -d /run/systemd/system ] || as_root systemctl disable --quiet "$2" 2>/dev/null
    [ "$verdict" = 0 ] || exit "$verdict"
}

# The user that runs a server: the package's own for root, else whoever calls.
server_user() {
    if [ "$(id -u)" != 0 ]; then
        id -un
    elif id "$1" >/dev/null 2>&1; then
        echo "$1"
    else
        die "there is no user $1 to run the server, and root must not; reinstall its Debian package"
    fi
}

give() { [ "$(id -u)" != 0 ] || chown "$1:" "$2"; }

random_word() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# setting <NAME>: what this directory remembers; fails if nothing.
setting() { sed -n "s/^$1=//p" "$dir/settings" 2>/dev/null | grep .; }

# set_setting <NAME> <value>
set_setting() {
    (
        umask 077
        grep -v "^$1=" "$dir/settings" 2>/dev/null
        echo "$1=$2"
    ) >"$dir/settings.new"
    chmod 600 "$dir/settings.new"
    mv "$dir/settings.new" "$dir/settings"
}

# failed_with <service> <what>: the end of its log says why.
failed_with() {
    say "the end of $dir/log/$1.log:"
    tail -n 15 "$dir/log/$1.log" | sed 's/^/    /' >&2
    die "$2"
}

exists() { [ -d "$dir/$1" ]; }
running() { recorded "$dir/$1.pid"; }

state() {
    local pid stat
    pid="$(running "$1")" && stat="$(stat_of "$pid")" || { echo down && return; }
    case "$stat" in
    T*) echo stopped ;;
    *) echo running ;;
    esac
}

# The directory, open for the users of the servers, and no further than for passing through.
make_dir() {
    local user="$1" service="$2"
    mkdir -p "$dir/log" || die "the directory $dir cannot be made"
    [ -O "$dir" ] || die "$dir belongs to somebody else; name a directory of your own"
    chmod a+x "$dir"
    mkdir -p "$dir/$service" && chmod 700 "$dir/$service" && give "$user" "$dir/$service"
    (as_user "$user" test -w "$dir/$service") ||
        die "the user $user cannot reach $dir/$service; choose a directory under /tmp, or open the directories above it (chmod a+x)"
}

# choose_ports <service>: those it had if they are free, else others.
choose_ports() {
    local ports="$1_ports[@]" name port
    for name in "${!ports}"; do
        port="$(setting "$name")" && ! port_taken "$port" && continue
        # The port mapper outlives a node that was killed.
        [ "$name" = RABBITMQ_EPMD_PORT ] && recorded "$dir/epmd.pid" >/dev/null && continue
        port="$(free_port)" || exit
        set_setting "$name" "$port"
    done
}

# start <service> [keep]: `keep` insists on the ports it had. Between the choice of a port and its
# use, somebody else may take it: other ports then, three times at most.
start() {
    local service="$1" keep="${2:-}" user attempt ports="$1_ports[@]" name
    "${service}_install"
    user="$("${service}_user")" || exit
    make_dir "$user" "$service"
    for attempt in 1 2 3; do
        if [ -n "$keep" ]; then
            for name in "${!ports}"; do
                [ "$name" = RABBITMQ_EPMD_PORT ] && recorded "$dir/epmd.pid" >/dev/null && continue
                ! port_taken "$(setting "$name")" ||
                    die "port $(setting "$name") ($name of $dir) is in use by another process; end that one, or let \`ops/services up $dir $service\` choose other ports"
            done
        else
            choose_ports "$service"
        fi
        "${service}_prepare" "$user"
        "${service}_launch" "$user"
        ! wait_until_ready "$service" || return 0
        tail -n 30 "$dir/log/$service.log" | grep -qiE 'eaddrinuse|address already in use' || break
        [ -z "$keep" ] || break
    done
    failed_with "$service" "$service did not start"
}

# Fails when the server has ended; dies when it takes a minute and a half.
wait_until_ready() {
    local i
    for ((i = 0; i < 900; i++)); do
        running "$1" >/dev/null || return 1
        ! "$1_ready" || return 0
        sleep 0.1
    done
    failed_with "$1" "$1 runs, but is not ready after 90 s"
}

write_env() {
    local service
    for service in postgres rabbitmq; do
        ! exists "$service" || "${service}_env"
    done >"$dir/env.new"
    ! wants_tls || echo "TLS_STRANGER=$dir/tls/stranger.pem" >>"$dir/env.new"
    chmod 600 "$dir/env.new"
    mv "$dir/env.new" "$dir/env"
}
