# A system: $ROOT replaces / of a real one. Functions replace programs that change the whole system.

ARCHIVE=keywright-0.1.0-x86_64-unknown-linux-gnu
export PATH=$ROOT/usr/bin:$PATH
mkdir -p "$ROOT"/etc/systemd/system "$ROOT"/usr/bin "$ROOT"/usr/lib "$ROOT"/var/lib "$ROOT"/var/log "$ROOT"/var/backups
PACKAGING=$WORKSPACE/host/server/packaging

# An archive with the layout of `cargo xtask dist`. The program is large, so a script calls it instead.
make_archive() {
    mkdir -p "$ARCHIVE/bin" "$ARCHIVE/plugins"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$PROGRAM" >"$ARCHIVE/bin/keywright"
    chmod 755 "$ARCHIVE/bin/keywright"
    local plugin
    for plugin in "$WORKSPACE"/plugins/*/; do
        plugin=$(basename "$plugin")
        [ "$plugin" = support ] || cp "$COMPONENTS/$plugin.wasm" "$ARCHIVE/plugins"
    done
    cp -r "$PACKAGING" "$ARCHIVE/packaging"
    mkdir -p "$ARCHIVE/packaging/var-lib/keywright"
    cp "$WORKSPACE/README.md" "$ARCHIVE"
    touch "$ARCHIVE/LICENSE" "$ARCHIVE/THIRD-PARTY.txt" "$ARCHIVE/keywright.cdx.json"
    (cd "$ARCHIVE" && find . -type f ! -name SHA256SUMS -exec sha256sum {} + >SHA256SUMS)
    tar -czf "$ARCHIVE.tar.gz" "$ARCHIVE"
    rm -r "$ARCHIVE"
}

# Ignores the user and group, because the tests have only one user.
install() {
    local arguments=()
    while [ $# -gt 0 ]; do
        case $1 in
        -g | -o) shift ;;
        *) arguments+=("$1") ;;
        esac
        shift
    done
    command install "${arguments[@]}"
}

systemd-sysusers() {
    grep -q '^u keywright ' "$ROOT/usr/lib/sysusers.d/keywright.conf"
}

# Runs a command as the current user, who owns all files of this system.
runuser() {
    [ "$1 $2 $3" = '-u keywright --' ] && "${@:4}"
}

# The value of a directive in the unit, with the folders of this system.
unit_value() {
    sed -n "s/^$1=//p" "$ROOT/etc/systemd/system/keywright.service" | sed -E "s#(^|[ :])/(etc|usr)/#\1$ROOT/\2/#g"
}

start_service() {
    local credentials=$ROOT/run/credentials/keywright.service credential
    mkdir -p "$ROOT/var/lib/keywright" "$ROOT/var/log/keywright" "$credentials"
    for credential in $(unit_value LoadCredential); do
        command install -m 600 "${credential#*:}" "$credentials/${credential%%:*}"
    done
    $(unit_value ExecStartPre) >>"$SESSION/log" || return 1
    # shellcheck disable=SC2046
    begin_program server $(unit_value ExecStart)
    wait_for is_up
}

is_up() {
    curl --silent --fail --cacert "$KEYS/ca.pem" "https://127.0.0.1:$PORT/health"
}

# Waits until the server has logged that it reloaded its files.
is_reloaded() {
    [ "$(grep -c 'reopened the audit trail' "$SESSION/log")" -gt "$1" ]
}

systemctl() {
    local before
    case $* in
    daemon-reload) [ -f "$ROOT/etc/systemd/system/keywright.service" ] ;;
    'enable --now keywright' | 'start keywright') start_service ;;
    'stop keywright') end_program server ;;
    'restart keywright') end_program server && start_service ;;
    'reload keywright')
        before=$(grep -c 'reopened the audit trail' "$SESSION/log")
        kill -HUP "$(cat "$SESSION/server.pid")"
        wait_for is_reloaded "$before"
        ;;
    *)
        echo "unsupported command: systemctl $*"
        return 1
        ;;
    esac
}

# Adapts the example configuration: folders, addresses, and the development identity provider instead of a real one. Generating
# keys takes longer in unoptimized programs while many tests run.
put_own_values_in() {
    local file=$ROOT/etc/keywright/keywright.toml
    sed -i -E -e "s#\"/(etc|run|usr|var)/#\"$ROOT/\1/#" -e "s#0\.0\.0\.0:8844#127.0.0.1:$PORT#" \
        -e "s#127\.0\.0\.1:9001#127.0.0.1:$MANAGEMENT_PORT#" \
        -e "s#https://uaa\.example:8443#https://127.0.0.1:$PORT/identity#" "$file"
    cat >>"$file" <<END

[development_identity_provider]
signing_key = "$KEYS/token-signing-key.pem"
access_token_seconds = 3600
refresh_token_seconds = 7200
clients = [
    { id = "keywright-admin", secret = "admin-secret" },
    { id = "app", secret = "app-secret" },
    { id = "credhub_cli", secret = "" },
]
users = [{ id = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10", name = "ops", password = "ops-password" }]

[generators.certificate.limits]
deadline_ms = 600000
END
}

# Provides compiled plugins for the next start, if the encryption key is the shared one of all tests.
share_compiled_plugins() {
    sed -i "s#^cache_directory = .*#cache_directory = \"$XDG_CACHE_HOME/keywright/plugins\"#" \
        "$ROOT/etc/keywright/keywright.toml"
}

# Makes the next start compile its plugins for this system only, as required with another encryption key, and keeps only one plugin.
own_plugin_cache() {
    local file=$ROOT/etc/keywright/keywright.toml
    sed -i "s#^cache_directory = .*#cache_directory = \"$ROOT/var/lib/keywright/plugin-cache\"#" "$file"
    awk '/^\[/ { is_kept = !/^\[(generators|resolver)/ || /^\[generators\.password\]/ } is_kept' "$file" >"$SESSION/kept.toml"
    cp "$SESSION/kept.toml" "$file"
}
