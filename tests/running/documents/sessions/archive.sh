# A machine to which a release archive was brought, with the server's TLS files beside it.
. "$SESSIONS/system.sh"
make_archive
cp "$KEYS/server.pem" "$KEYS/server-key.pem" "$KEYS/ca.pem" .
