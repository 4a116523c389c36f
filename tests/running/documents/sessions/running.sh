# A machine with a running server, where an administrator is logged in.
. "$SESSIONS/system.sh"
make_archive
tar -xzf "$ARCHIVE.tar.gz"
install -D "$ARCHIVE/bin/keywright" "$ROOT/usr/bin/keywright"
install -D -m 644 -t "$ROOT/usr/lib/keywright/plugins" "$ARCHIVE"/plugins/*.wasm
install -D -m 640 -t "$ROOT/etc/keywright/tls" "$KEYS/server.pem" "$KEYS/server-key.pem" "$KEYS/ca.pem"
install -m 640 "$ARCHIVE/packaging/keywright.toml" "$ROOT/etc/keywright/keywright.toml"
install -m 600 "$KEYS/encryption.key" "$ROOT/etc/keywright/encryption.key"
install -m 644 "$ARCHIVE/packaging/keywright.service" "$ROOT/etc/systemd/system/keywright.service"
put_own_values_in
share_compiled_plugins
systemctl enable --now keywright
export KEYWRIGHT_CLIENT_SERVER=https://127.0.0.1:$PORT KEYWRIGHT_CLIENT_CA_CERT=$ROOT/etc/keywright/tls/ca.pem
export KEYWRIGHT_CLIENT_ID=keywright-admin KEYWRIGHT_CLIENT_SECRET=admin-secret

# An access token for direct requests to the API.
token() {
    curl --silent --cacert "$KEYS/ca.pem" "$KEYWRIGHT_CLIENT_SERVER/identity/oauth/token" -d grant_type=client_credentials \
        -d client_id=keywright-admin -d client_secret=admin-secret | jq --raw-output .access_token
}

# Generates two passwords with a plugin that the document replaces: the shipped plugin with an additional section, and
# therefore another digest.
generate_by_a_bad_plugin() {
    cp "$ROOT/usr/lib/keywright/plugins/password.wasm" password-mended.wasm
    printf '\x00\x04\x03bad' >>"$ROOT/usr/lib/keywright/plugins/password.wasm"
    systemctl restart keywright
    keywright generate /team/database --type password
    keywright generate /team/queue --type password
}
