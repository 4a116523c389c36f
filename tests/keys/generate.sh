#!/usr/bin/env bash
# Generates the keys of test servers. They protect nothing, and are stored here so that tests start fast.
set -euo pipefail
cd "$(dirname "$0")"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj '/CN=Keywright test authority' \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign' -keyout ca-key.pem -out ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=Keywright test server' \
    -keyout server-key.pem -out server.csr
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca-key.pem -days 36500 -set_serial 2 -out server.pem -extfile <(
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n')
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out token-signing-key.pem
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out other-signing-key.pem
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:8192 -out rsa-8192.pem
openssl rand -base64 32 >encryption.key
openssl kdf -binary -keylen 32 -kdfopt digest:SHA256 -kdfopt salt:keywright -kdfopt 'info:label:compiled plugins' \
    -kdfopt "hexkey:$(base64 -d encryption.key | od -An -v -tx1 | tr -d ' \n')" HKDF >plugin-cache.key
rm server.csr ca-key.pem
