# A workspace folder in which `cargo xtask run` has started a server.
mkdir -p target/debug
ln -s "$COMPONENTS" target/components
ln -s "$PROGRAM" target/debug/keywright
export PATH=$PWD/target/debug:$PATH

# Generating keys takes longer in unoptimized programs while many tests run.
start_server() {
    KEYWRIGHT_GENERATORS__CERTIFICATE__LIMITS__DEADLINE_MS=600000 \
        begin_program server keywright develop --directory .keywright --plugins target/components --listen "127.0.0.1:$PORT"
    wait_for curl --silent --cacert .keywright/tls/ca.pem "https://127.0.0.1:$PORT/health"
}

restart_server() {
    end_program server
    start_server
}

start_server
