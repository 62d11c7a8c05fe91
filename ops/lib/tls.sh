# Certificates for the servers in $dir, of an authority of their own. Sourced by `ops/services`, not
# run.

wants_tls() { [ -e "$dir/tls/ca.pem" ]; }

# Makes $dir/tls: `ca.pem` vouches for `server.pem`, which is for 127.0.0.1 and for nothing else;
# `stranger.pem` is an authority that vouches for nobody.
tls_make() {
    wants_tls && return
    need openssl openssl
    rm -rf "$dir/tls.new"
    mkdir -p "$dir/tls.new" || die "the directory $dir/tls.new cannot be made"
    (
        cd "$dir/tls.new" && umask 077 &&
            tls_authority ca && tls_authority stranger &&
            openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=stepfleet" \
                -keyout server.key -out server.csr &&
            printf '%s\n' "basicConstraints=CA:FALSE" "subjectAltName=IP:127.0.0.1" \
                "extendedKeyUsage=serverAuth" >server.ext &&
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 2 -days 30 \
                -extfile server.ext -out server.pem &&
            chmod 644 ca.pem stranger.pem server.pem && rm -f server.csr server.ext stranger.key &&
            chmod 755 .
    ) >"$dir/tls.log" 2>&1 || {
        tail -n 5 "$dir/tls.log" >&2
        die "openssl cannot make certificates in $dir/tls.new; see $dir/tls.log"
    }
    rm -f "$dir/tls.log"
    # Made aside and moved when complete: what was interrupted is made again.
    mv "$dir/tls.new" "$dir/tls"
}

# tls_authority <name>
tls_authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=stepfleet $1" \
        -addext "keyUsage=critical,keyCertSign" -keyout "$1.key" -out "$1.pem"
}

# tls_key <user> <file>: the server's key where its user may read it.
tls_key() {
    (umask 077 && cat "$dir/tls/server.key" >"$2") && give "$1" "$2"
}
