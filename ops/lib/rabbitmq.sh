# A private RabbitMQ node in $dir/rabbitmq, with a port mapper (epmd) of its own. Sourced by
# `ops/services`, not run.

rabbitmq_ports=(AMQP_PORT AMQPS_PORT RABBITMQ_DIST_PORT RABBITMQ_EPMD_PORT)

# Whose programs run in $dir: the system's, or those of a tree that `ops/rabbitmq4` has unpacked, with an
# Erlang of their own. A directory keeps to what it began with: data of one version is nothing to another.
rabbitmq_choose() {
    local began
    rabbitmq_tree="${FLEET_RABBITMQ:-}"
    if exists rabbitmq; then
        began="$(setting RABBITMQ_TREE)"
        [ -z "$rabbitmq_tree" ] || [ "$rabbitmq_tree" = "$began" ] ||
            die "$dir began with ${began:-the RabbitMQ of the system}, and FLEET_RABBITMQ names another one; choose another directory"
        rabbitmq_tree="$began"
    fi
    rabbitmq_bin="$rabbitmq_tree/usr/lib/rabbitmq/bin"
    rabbitmq_path="$rabbitmq_bin${rabbitmq_tree:+:$rabbitmq_tree/usr/lib/erlang/bin}:/usr/local/bin:/usr/bin:/bin"
}

rabbitmq_install() {
    [ -z "$rabbitmq_tree" ] || [ -x "$rabbitmq_bin/rabbitmq-server" ] ||
        die "there is no RabbitMQ in $rabbitmq_tree; FLEET_RABBITMQ takes the directory that \`ops/rabbitmq4\` prints"
    # The user that root runs it as comes with Debian's package, whoever's programs they are.
    [ -z "$rabbitmq_tree" ] || [ "$(id -u)" != 0 ] || id rabbitmq >/dev/null 2>&1 ||
        install_quietly rabbitmq-server rabbitmq-server
    # Not the wrappers in /usr/sbin: they know one node a machine.
    PATH="$rabbitmq_bin:$PATH"
    install_quietly rabbitmq-server rabbitmq-server
    [ -x "$rabbitmq_bin/rabbitmq-server" ] || die "RabbitMQ is not in $rabbitmq_bin; install Debian's rabbitmq-server"
}

rabbitmq_user() { server_user rabbitmq; }

rabbitmq_prepare() {
    local user="$1" home="$dir/rabbitmq" file
    [ -z "$rabbitmq_tree" ] || set_setting RABBITMQ_TREE "$rabbitmq_tree"
    setting AMQP_PASSWORD >/dev/null || set_setting AMQP_PASSWORD "$(random_word)"
    # Written at each start: the port may be another one than last time.
    (
        umask 077
        cat >"$home/rabbitmq.conf" <<-EOF
		listeners.tcp.local = 127.0.0.1:$(setting AMQP_PORT)
		default_user = stepfleet
		default_pass = $(setting AMQP_PASSWORD)
		# The log of quorum queues in memory, per node: 512 MiB if nothing is said.
		raft.wal_max_size_bytes = 67108864
		log.console = true
		log.console.level = info
		log.file = false
		EOF
        ! wants_tls || cat >>"$home/rabbitmq.conf" <<-EOF
		listeners.ssl.local = 127.0.0.1:$(setting AMQPS_PORT)
		ssl_options.cacertfile = $dir/tls/ca.pem
		ssl_options.certfile = $dir/tls/server.pem
		ssl_options.keyfile = $home/tls.key
		# Clients have a password.
		ssl_options.verify = verify_none
		ssl_options.fail_if_no_peer_cert = false
		EOF
        echo '[].' >"$home/enabled_plugins"
    )
    ! wants_tls || tls_key "$user" "$home/tls.key"
    for file in rabbitmq.conf enabled_plugins; do
        give "$user" "$home/$file"
    done
}

# The environment of the node and of its tools: nothing of the caller's, nothing of the system's.
rabbitmq_environment() {
    local home="$dir/rabbitmq"
    printf '%s\n' "PATH=$rabbitmq_path" LC_ALL=C.UTF-8 "HOME=$home" \
        RABBITMQ_NODENAME=stepfleet@localhost \
        "RABBITMQ_CONF_ENV_FILE=$home/none" \
        "RABBITMQ_CONFIG_FILE=$home/rabbitmq.conf" \
        "RABBITMQ_ADVANCED_CONFIG_FILE=$home/none.config" \
        "RABBITMQ_GENERATED_CONFIG_DIR=$home/config" \
        "RABBITMQ_ENABLED_PLUGINS_FILE=$home/enabled_plugins" \
        "RABBITMQ_MNESIA_BASE=$home/mnesia" \
        "RABBITMQ_LOG_BASE=$home" RABBITMQ_LOGS=- \
        "RABBITMQ_DIST_PORT=$(setting RABBITMQ_DIST_PORT)" \
        "ERL_EPMD_PORT=$(setting RABBITMQ_EPMD_PORT)" ERL_EPMD_ADDRESS=127.0.0.1 \
        "ERL_CRASH_DUMP=$home/erl_crash.dump" \
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}"
}

rabbitmq_launch() {
    local user="$1" home="$dir/rabbitmq" log="$dir/log/rabbitmq.log" variables
    mapfile -t variables < <(rabbitmq_environment)
    recorded "$dir/epmd.pid" >/dev/null ||
        launch "$dir/epmd.pid" "$log" "$user" "$home" env -i "${variables[@]}" epmd
    # As under systemd, the script becomes the node itself: one process id, and SIGTERM ends it in
    # order.
    launch "$dir/rabbitmq.pid" "$log" "$user" "$home" \
        env -i "${variables[@]}" RUNNING_UNDER_SYSTEMD=true "$rabbitmq_bin/rabbitmq-server"
}

# The listener opens last, and a node that greets a client serves it. (`rabbitmqctl` would take
# seconds to find out.)
rabbitmq_ready() {
    local greeting
    greeting="$(
        exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$(setting AMQP_PORT)" || exit
        printf 'AMQP\0\0\011\001' >&3
        # A method frame (1) on channel 0: connection.start.
        timeout 2 head -c 3 <&3 | od -An -tx1 | tr -d ' '
    )"
    [ "$greeting" = 010000 ]
}

rabbitmq_end() {
    local epmd
    end_tree TERM "$1" 30
    epmd="$(recorded "$dir/epmd.pid")" && end_tree TERM "$epmd" 5
    rm -f "$dir/epmd.pid"
}

rabbitmq_env() {
    local account
    account="stepfleet:$(setting AMQP_PASSWORD)@127.0.0.1"
    echo "STEPFLEET_AMQP_URL=amqp://$account:$(setting AMQP_PORT)/%2f"
    ! wants_tls || echo "AMQPS_URL=amqps://$account:$(setting AMQPS_PORT)/%2f?cacertfile=$dir/tls/ca.pem"
}

# rabbitmq_ctl <arguments>: `rabbitmqctl` for this node.
rabbitmq_ctl() {
    local variables
    rabbitmq_install
    mapfile -t variables < <(rabbitmq_environment)
    (cd "$dir/rabbitmq" && as_user "$(rabbitmq_user)" env -i "${variables[@]}" "$rabbitmq_bin/rabbitmqctl" "$@")
}
