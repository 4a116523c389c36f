# A machine with a release archive and the server's TLS files next to it.
. "$SESSIONS/system.sh"
make_archive
cp "$KEYS/server.pem" "$KEYS/server-key.pem" "$KEYS/ca.pem" .
