# A machine with the programs of PostgreSQL, which can reach a server of it with a database that a server has used.
. "$SESSIONS/running.sh"
systemctl stop keywright
sed -i "s#^file = .*keywright.db\"#url = \"${DATABASE_URL//&/\\&}\"#" "$ROOT/etc/keywright/keywright.toml"
systemctl start keywright
createdb() {
    psql --quiet --dbname="$DATABASE_URL" --command="create database ${*: -1}"
}
