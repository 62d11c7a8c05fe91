# A private PostgreSQL server in $dir/postgres. Sourced by `ops/services`, not run.

postgres_ports=(POSTGRES_PORT)

postgres_install() {
    postgres_path
    install_quietly postgres postgresql
    postgres_path
}

# Debian keeps the servers out of everybody's PATH; the newest version wins.
postgres_path() {
    local bin
    bin="$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)"
    [ ! -x "$bin/postgres" ] || PATH="$bin:$PATH"
}

postgres_user() { server_user postgres; }

postgres_prepare() {
    local user="$1" home="$dir/postgres"
    if [ -d "$home/data" ]; then
        postgres_forget_the_dead "$home"
        return
    fi
    # Made aside and moved when complete: what was interrupted is made again.
    rm -rf "$home/data.new"
    if [ -n "$follows" ]; then
        postgres_copy "$user"
    else
        postgres_create "$user"
    fi
    mv "$home/data.new" "$home/data"
}

postgres_create() {
    local user="$1" home="$dir/postgres"
    setting POSTGRES_PASSWORD >/dev/null || set_setting POSTGRES_PASSWORD "$(random_word)"
    (umask 077 && setting POSTGRES_PASSWORD >"$home/password") && give "$user" "$home/password"
    (as_user "$user" initdb --pgdata="$home/data.new" --username=stepfleet --auth=scram-sha-256 \
        --pwfile="$home/password" --encoding=UTF8 --locale=C.UTF-8) >>"$dir/log/postgres.log" 2>&1 &&
        (as_user "$user" postgres --single -D "$home/data.new" postgres \
            <<<'CREATE DATABASE stepfleet;') >>"$dir/log/postgres.log" 2>&1 ||
        failed_with postgres "PostgreSQL cannot create its data in $home"
    rm -f "$home/password"
}

# A standby of the server in $follows, with its password.
postgres_copy() {
    local user="$1" home="$dir/postgres"
    set_setting POSTGRES_PASSWORD "$(dir="$follows" setting POSTGRES_PASSWORD)"
    (
        PGPASSWORD="$(setting POSTGRES_PASSWORD)"
        export PGPASSWORD
        as_user "$user" pg_basebackup --pgdata="$home/data.new" --write-recovery-conf --checkpoint=fast \
            --host=127.0.0.1 --port="$(dir="$follows" setting POSTGRES_PORT)" --username=stepfleet
    ) >>"$dir/log/postgres.log" 2>&1 || failed_with postgres "PostgreSQL cannot copy $follows to $home"
}

# Returns once it takes writes.
postgres_promote() {
    postgres_path
    (cd "$dir/postgres" && as_user "$(postgres_user)" pg_ctl promote --silent --wait --pgdata="$dir/postgres/data") ||
        failed_with postgres "the PostgreSQL in $dir does not become a primary"
}

# After a power loss the process id in a lock file may be that of somebody else, and after a kill
# that of a zombie: PostgreSQL would refuse to start. Its processes all work in the data directory;
# where nobody does, the lock files are stale.
postgres_forget_the_dead() {
    find /proc -mindepth 2 -maxdepth 2 -name cwd -printf '%l\n' 2>/dev/null | grep -qxF "$1/data" ||
        rm -f "$1/data/postmaster.pid" "$1"/.s.PGSQL.*
}

postgres_launch() {
    local user="$1" home="$dir/postgres" socket="$dir/postgres" tls=()
    if wants_tls; then
        tls_key "$user" "$home/tls.key"
        tls=(-c ssl=on -c ssl_cert_file="$dir/tls/server.pem" -c ssl_key_file="$home/tls.key")
    fi
    # The address of a Unix socket holds 107 characters. TCP does without.
    [ ${#socket} -le 90 ] || socket=""
    # Connections for some twenty processes, each of which may open 17 (ops/deploy/README.md).
    # Durability as PostgreSQL has it by default, said here because measurements rely on it.
    launch "$dir/postgres.pid" "$dir/log/postgres.log" "$user" "$home" \
        env LC_ALL=C.UTF-8 "$(command -v postgres)" -D "$home/data" \
        -c listen_addresses=127.0.0.1 -c port="$(setting POSTGRES_PORT)" \
        -c unix_socket_directories="$socket" \
        -c fsync=on -c synchronous_commit=on -c full_page_writes=on \
        -c shared_buffers=256MB -c max_connections=400 "${tls[@]}"
}

postgres_ready() { pg_isready -q -h 127.0.0.1 -p "$(setting POSTGRES_PORT)" -t 2; }

# An orderly end that does not wait for clients.
postgres_end() { end_tree INT "$1" 30; }

postgres_env() {
    local url
    url="postgres://stepfleet:$(setting POSTGRES_PASSWORD)@127.0.0.1:$(setting POSTGRES_PORT)/stepfleet"
    echo "STEPFLEET_DATABASE_URL=$url"
    ! wants_tls || echo "POSTGRES_TLS_URL='$url?sslmode=verify-full&sslrootcert=$dir/tls/ca.pem'"
}
