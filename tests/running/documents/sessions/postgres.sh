# A machine with the PostgreSQL programs and access to a server with a used database.
. "$SESSIONS/running.sh"
systemctl stop keywright
sed -i "s#^file = .*keywright.db\"#url = \"${DATABASE_URL//&/\\&}\"#" "$ROOT/etc/keywright/keywright.toml"
systemctl start keywright
createdb() {
    psql --quiet --dbname="$DATABASE_URL" --command="create database ${*: -1}"
}
