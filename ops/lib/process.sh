# Servers as process trees: start them apart from the caller, know them again for certain, signal
# all of a tree. Sourced, not run.
#
# A record file holds `<pid> <start time> <boot>`: a process id alone says nothing after the
# process has died, and less after a reboot.

boot_id() { cat /proc/sys/kernel/random/boot_id; }

# The state letter and the start time of a process; fails if there is none.
stat_of() {
    local line
    line="$(cat "/proc/$1/stat" 2>/dev/null)" || return 1
    # The name, in brackets, may hold anything; what follows the last bracket is numbers.
    set -- ${line##*) }
    [ "$1" != Z ] && [ "$1" != X ] && echo "$1 ${20}"
}

# record <file> <pid>
record() {
    local stat
    stat="$(stat_of "$2")" || return 1
    echo "$2 ${stat#* } $(boot_id)" >"$1"
}

# The process id of a record, if that very process is still there.
recorded() {
    local pid started boot stat
    read -r pid started boot 2>/dev/null <"$1" || return 1
    [ "$boot" = "$(boot_id)" ] || return 1
    stat="$(stat_of "$pid")" || return 1
    [ "${stat#* }" = "$started" ] && echo "$pid"
}

# As the user of a server: root must not run them, and anybody else runs them as themself. `exec`s
# all the way, so that the process id of the call is that of the server.
as_user() {
    local user="$1"
    shift
    if [ "$(id -u)" = 0 ]; then
        exec setpriv --reuid="$user" --regid="$(id -gn "$user")" --init-groups -- "$@"
    else
        exec "$@"
    fi
}

# launch <record file> <log> <user> <directory> <command>...: apart from the caller's terminal,
# group and open files, so that neither Ctrl-C nor a waiting pipe ties the two together.
launch() {
    local file="$1" log="$2" user="$3" directory="$4" fd
    shift 4
    (
        for fd in /proc/self/fd/*; do
            fd="${fd##*/}"
            [ "$fd" -le 2 ] || eval "exec $fd>&-" 2>/dev/null
        done
        cd "$directory" && as_user "$user" setsid "$@"
    ) </dev/null >>"$log" 2>&1 &
    # Gone already if it failed at once; the wait for readiness tells.
    record "$file" $! || rm -f "$file"
    # The shell need not report how it ends.
    disown $! 2>/dev/null
}

# A process and all its descendants, the root first.
tree() {
    ps -e -o pid=,ppid= | awk -v root="$1" '
        { parent[$1] = $2 }
        END {
            member[root] = 1
            print root
            do {
                grown = 0
                for (pid in parent) {
                    if (!(pid in member) && (parent[pid] in member)) {
                        member[pid] = 1
                        print pid
                        grown = 1
                    }
                }
            } while (grown)
        }'
}

# signal_tree <signal> <pid>: PostgreSQL's processes each lead a group of their own, so that no
# signal to a group reaches them all.
signal_tree() {
    local pids
    # The root first: what is frozen has no more children.
    [ "$1" = CONT ] || kill -STOP "$2" 2>/dev/null || return 0
    pids="$(tree "$2")"
    # shellcheck disable=SC2086
    kill "-$1" $pids 2>/dev/null
    if [ "$1" = KILL ]; then
        local pid
        for pid in $pids; do
            until_gone "$pid" 100 || die "process $pid does not die"
        done
    fi
}

# until_gone <pid> <tenths of a second>
until_gone() {
    local i
    for ((i = 0; i < $2; i++)); do
        stat_of "$1" >/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# end_tree <signal> <pid> <seconds>: asks for an orderly end, and kills what does not hear.
end_tree() {
    signal_tree CONT "$2"
    kill "-$1" "$2" 2>/dev/null
    until_gone "$2" "$(($3 * 10))" || signal_tree KILL "$2"
}

# Does anything listen on this TCP port, on any address?
port_taken() {
    # 0A: listening. What a killed server left behind, half closed connections above all, keeps no
    # other one from taking its port.
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$(printf ':%04X' "$1")" '
        $2 ~ (port "$") && $4 == "0A" { found = 1 }
        END { exit !found }'
}

# A free port below those that the kernel hands out to outgoing connections.
free_port() {
    local port i
    for ((i = 0; i < 200; i++)); do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        port_taken "$port" || { echo "$port" && return; }
    done
    die "no free TCP port between 20000 and 32000"
}
