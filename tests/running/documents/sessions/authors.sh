# A workspace folder in which `cargo xtask run` has started a server, for users with compilers.
. "$SESSIONS/development.sh"

# The compilers' user folders and builds of the example: nothing is downloaded, and little is recompiled.
export CARGO_HOME=$CARGO_FOLDER RUSTUP_HOME=$RUSTUP_FOLDER CARGO_NET_OFFLINE=true
export CARGO_TARGET_DIR=$WORKSPACE/target/example-guests
export PATH=$WORKSPACE/target/toolchains/bin:$PATH ZIG_GLOBAL_CACHE_DIR=$CACHE_FOLDER/zig

# Signals the server of this session, as if it were the only server of the machine.
pkill() {
    [ "$*" = "--signal HUP --full keywright develop" ] && kill -HUP "$(cat "$SESSION/server.pid")"
}

# A local registry instead of a remote one, and a signing key pair.
cat >"$SESSION/registry.yml" <<END
version: 0.1
storage: { filesystem: { rootdirectory: $SESSION/registry } }
http: { addr: 127.0.0.1:$SECOND_PORT }
END
begin_program registry docker-registry serve "$SESSION/registry.yml"
wait_for curl --silent "http://127.0.0.1:$SECOND_PORT/v2/"
minisign -G -W
