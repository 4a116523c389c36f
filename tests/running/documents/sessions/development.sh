# A workspace folder in which `cargo xtask run` has started a server.
mkdir -p target/debug
ln -s "$COMPONENTS" target/components
ln -s "$PROGRAM" target/debug/keywright
export PATH=$PWD/target/debug:$PATH

# Generating keys takes longer in unoptimized programs while many tests run. With the shared encryption key of all tests, the server
# can use their compiled plugins.
start_server() {
    KEYWRIGHT_GENERATORS__CERTIFICATE__LIMITS__DEADLINE_MS=600000 \
        KEYWRIGHT_ENCRYPTION__KEYS="[{ provider = \"raw\", file = \"$KEYS/encryption.key\", active = true }]" \
        KEYWRIGHT_PLUGINS__CACHE_DIRECTORY=$XDG_CACHE_HOME/keywright/plugins \
        begin_program server keywright develop --directory .keywright --plugins target/components --listen "127.0.0.1:$PORT"
    wait_for curl --silent --cacert .keywright/tls/ca.pem "https://127.0.0.1:$PORT/health"
}

restart_server() {
    end_program server
    start_server
}

start_server
