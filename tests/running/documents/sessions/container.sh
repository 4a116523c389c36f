# The folder of an unpacked release archive, on a machine with podman. This replacement of podman only builds an image from a
# container file, and runs it with a mounted configuration.
. "$SESSIONS/system.sh"
make_archive
tar -xzf "$ARCHIVE.tar.gz"
cd "$ARCHIVE" || exit 1
install -D -m 644 -t "$ROOT/etc/keywright/tls" "$KEYS/server.pem" "$KEYS/server-key.pem" "$KEYS/ca.pem"
install -m 644 packaging/keywright.toml "$ROOT/etc/keywright/keywright.toml"
install -m 644 "$KEYS/encryption.key" "$ROOT/etc/keywright/encryption.key"
put_own_values_in
share_compiled_plugins
sed -i -e '/^\[audit\]/,/^file/d' -e "s#^file = .*encryption.key\"#file = \"$ROOT/etc/keywright/encryption.key\"#" \
    "$ROOT/etc/keywright/keywright.toml"

podman() {
    local verb=$1 argument source
    case $verb in
    build)
        grep '^COPY ' packaging/Containerfile | sed -E 's/ --[a-z]+=[^ ]+//g' | while read -r _ argument; do
            for source in ${argument% *}; do
                [ -e "$source" ] || return 1
            done
            case $argument in
            bin/keywright*) install -D bin/keywright "$ROOT/usr/bin/keywright" ;;
            plugins*) install -D -m 644 -t "$ROOT/usr/lib/keywright/plugins" plugins/*.wasm ;;
            esac
        done
        ;;
    run)
        case "$*" in
        *"--volume $ROOT/etc/keywright:$ROOT/etc/keywright:ro --volume keywright:$ROOT/var/lib/keywright keywright") ;;
        *) return 1 ;;
        esac
        mkdir -p "$ROOT/var/lib/keywright"
        # shellcheck disable=SC2046
        begin_program server "$ROOT/usr/bin/keywright" \
            $(sed -n 's/^CMD //p' packaging/Containerfile | tr -d '[],"' | sed "s# /etc# $ROOT/etc#")
        wait_for is_up
        ;;
    *) return 1 ;;
    esac
}
