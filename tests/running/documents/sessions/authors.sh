# A folder as that of the workspace, in which `cargo xtask run` has started a server, for somebody who has a compiler.
. "$SESSIONS/development.sh"

# What compilers keep for their user, and what they have built for the example: nothing is fetched, and little is compiled anew.
export CARGO_HOME=$CARGO_FOLDER RUSTUP_HOME=$RUSTUP_FOLDER CARGO_NET_OFFLINE=true
export CARGO_TARGET_DIR=$WORKSPACE/target/example-guests

# The server of this session stands for the only one of a machine.
pkill() {
    [ "$*" = "--signal HUP --full keywright develop" ] && kill -HUP "$(cat "$SESSION/server.pid")"
}
