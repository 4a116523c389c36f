# A machine with a running server and access to a CredHub. A script replaces the CredHub and its command line, and writes a file
# in the same format.
. "$SESSIONS/running.sh"
cp "$KEYS/ca.pem" credhub-ca.pem

indented() {
    sed 's/^/      /' "$1"
}

openssl req -x509 -newkey rsa:2048 -nodes -days 400 -subj '/CN=Team authority' -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=keyCertSign -keyout authority-key.pem -out authority.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=web -keyout web-key.pem -out web.csr
printf 'subjectAltName=DNS:web.example\n' >web.ext
openssl x509 -req -in web.csr -CA authority.pem -CAkey authority-key.pem -days 300 -extfile web.ext -out web.pem
ssh-keygen -q -t rsa -b 2048 -m PEM -N '' -C team -f ssh
cat >exported.yml <<END
credentials:
- name: /team/web
  type: certificate
  value:
    ca_name: /team/authority
    certificate: |
$(indented web.pem)
    private_key: |
$(indented web-key.pem)
- name: /team/authority
  type: certificate
  value:
    ca: |
$(indented authority.pem)
    certificate: |
$(indented authority.pem)
    private_key: |
$(indented authority-key.pem)
- name: /team/database
  type: json
  value:
    host: db.example
    port: 5432
- name: /team/password
  type: password
  value: u9f8XlTn4bLs0ePq
  metadata:
    owner: team
- name: /team/user
  type: user
  value:
    password: b7Gq2xKe9mZs4rWt
    password_hash: \$6\$aXb1cY2d\$0n2yoWcTJ8Vq6PzS3mBfRkUeHdLgZx5Ai7tNw9YvCpKs1XjQrMEuOhFGbD4lVa6Tz8iyWnJ0kPcR3sLqB2m.
    username: team
- name: /team/ssh
  type: ssh
  value:
    private_key: |
$(indented ssh)
    public_key: $(cat ssh.pub)
    public_key_fingerprint: $(ssh-keygen -l -f ssh.pub | sed 's/.*SHA256:\([^ ]*\).*/\1/')
- name: /team/port
  type: value
  value: 5432
- name: /team/first,second
  type: value
  value: both
END

credhub() {
    case $1 in
    export) cp "$SESSION/work/exported.yml" "$3" ;;
    import) printf 'Import complete.\nSuccessfully set: %s\nFailed to set: 0\n' "$(grep -c '^- name: /' "$3")" ;;
    *) return 1 ;;
    esac
}

curl() {
    case $* in
    *https://credhub.example:8844/management*) printf '{"read_only_mode":true}' ;;
    *) command curl "$@" ;;
    esac
}

# The permissions table of a CredHub database.
psql --quiet --dbname="$DATABASE_URL" <<END
create table permission (
    path text, actor text, read_permission boolean, write_permission boolean, delete_permission boolean,
    read_acl_permission boolean, write_acl_permission boolean
);
insert into permission values
    ('/team/*', 'uaa-client:app', true, true, false, false, false),
    ('/team/database', 'mtls-app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55', true, false, false, false, false);
END
