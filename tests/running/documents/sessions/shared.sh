# The shared part of all sessions.

# Prints the status of each command. The session ends with the first failure.
ended() {
    echo "$1" >"$2.status"
    [ "$1" = 0 ] || exit 1
}

# Waits until a command succeeds. The first start of a server compiles its plugins, in parallel with other tests, which takes
# minutes on a slow machine. Stops waiting when a background program has exited.
wait_for() {
    local give_up=$((SECONDS + 600))
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$give_up" ] || ! all_are_running; then
            echo "gave up waiting for: $*"
            return 1
        fi
        sleep 0.1
    done
}

all_are_running() {
    local file
    for file in "$SESSION"/*.pid; do
        [ ! -f "$file" ] || kill -0 "$(cat "$file")" || return 1
    done
}

# Starts a background program with a name.
begin_program() {
    local name=$1
    shift
    "$@" >>"$SESSION/log" 2>&1 </dev/null &
    echo $! >"$SESSION/$name.pid"
}

# Stops a background program, if it runs, and waits for its exit.
end_program() {
    [ -f "$SESSION/$1.pid" ] || return 0
    local id
    id=$(cat "$SESSION/$1.pid")
    rm "$SESSION/$1.pid"
    kill "$id"
    wait "$id"
}

end_all() {
    local file
    for file in "$SESSION"/*.pid; do
        [ -f "$file" ] && kill "$(cat "$file")"
    done
}
trap end_all EXIT
trap 'exit 1' TERM

# The documents show the output on a terminal.
export KEYWRIGHT_CLIENT_OUTPUT=table
