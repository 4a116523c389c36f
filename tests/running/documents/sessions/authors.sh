# A folder as that of the workspace, in which `cargo xtask run` has started a server, for somebody who has a compiler.
. "$SESSIONS/development.sh"

# What compilers keep for their user, and what they have built for the example: nothing is fetched, and little is compiled anew.
export CARGO_HOME=$CARGO_FOLDER RUSTUP_HOME=$RUSTUP_FOLDER CARGO_NET_OFFLINE=true
export CARGO_TARGET_DIR=$WORKSPACE/target/example-guests
export PATH=$WORKSPACE/target/toolchains/bin:$PATH ZIG_GLOBAL_CACHE_DIR=$CACHE_FOLDER/zig

# The server of this session stands for the only one of a machine.
pkill() {
    [ "$*" = "--signal HUP --full keywright develop" ] && kill -HUP "$(cat "$SESSION/server.pid")"
}

# A registry in the place of one elsewhere, and a key pair to sign with.
cat >"$SESSION/registry.yml" <<END
version: 0.1
storage: { filesystem: { rootdirectory: $SESSION/registry } }
http: { addr: 127.0.0.1:$SECOND_PORT }
END
begin_program registry docker-registry serve "$SESSION/registry.yml"
wait_for curl --silent "http://127.0.0.1:$SECOND_PORT/v2/"
minisign -G -W
