# Runs a PostgreSQL server until standard input is closed. Each input line is a command, and its output is one line. The first
# line of output is the folder of the server's socket. All files are deleted at exit.
set -eu
trap '' INT HUP
programs=$1
folder=$(mktemp -d)
"$programs/initdb" --pgdata="$folder/data" --username=keywright --auth=trust --encoding=UTF8 --locale=C.UTF-8 $2 \
    --no-sync >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; rm -rf "$folder"; exit 1; }
cat >>"$folder/data/postgresql.conf" <<SETTINGS
listen_addresses = ''
unix_socket_directories = '$folder'
max_connections = 1000
fsync = off
full_page_writes = off
jit = off
$3
SETTINGS
echo "$folder"
# Sends a signal to all processes of the server.
signal() {
    postmaster=$(head -n 1 "$folder/data/postmaster.pid" 2>/dev/null) || return 0
    kill -s "$1" "$postmaster" 2>/dev/null || return 0
    for process in $(cat "/proc/$postmaster/task/$postmaster/children"); do
        kill -s "$1" "$process" 2>/dev/null || true
    done
}
while read -r command rest; do
    case $command in
    certificate) echo "$rest" | tr '|' '\n' >"$folder/data/server.crt" ;;
    key) (umask 077 && echo "$rest" | tr '|' '\n' >"$folder/data/server.key") ;;
    listen)
        # Makes the server listen on a port of the loopback address, only with TLS and a password.
        cat >>"$folder/data/postgresql.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $rest
ssl = on
SETTINGS
        echo "hostssl all all 127.0.0.1/32 scram-sha-256" >"$folder/data/pg_hba.conf"
        ;;
    start) "$programs/pg_ctl" start --wait --pgdata="$folder/data" --log="$folder/log" >/dev/null </dev/null ;;
    crash) "$programs/pg_ctl" stop --wait --mode=immediate --pgdata="$folder/data" >/dev/null ;;
    freeze) signal STOP ;;
    thaw) signal CONT ;;
    stop) "$programs/pg_ctl" stop --wait --mode=fast --pgdata="$folder/data" >/dev/null ;;
    esac
    echo done
done
signal CONT
"$programs/pg_ctl" stop --wait --mode=immediate --pgdata="$folder/data" >/dev/null 2>&1 || true
rm -rf "$folder"
