#!/usr/bin/env bash
# Generates certificates and keys in formats that only OpenSSL can write. They protect nothing.
set -euo pipefail
cd "$(dirname "$0")"

openssl genrsa -traditional -out version-1-key.pkcs1.pem 2048
openssl req -new -key version-1-key.pkcs1.pem -subj '/CN=version 1' -out version-1.csr
openssl x509 -req -in version-1.csr -signkey version-1-key.pkcs1.pem -days 36500 -out version-1.pem
openssl rsa -in version-1-key.pkcs1.pem -aes128 -passout pass:x -traditional -out version-1-key.encrypted-pkcs1.pem
openssl pkcs8 -topk8 -in version-1-key.pkcs1.pem -passout pass:x -out version-1-key.encrypted-pkcs8.pem
openssl ecparam -genkey -name prime256v1 -noout -out ecdsa-key.sec1.pem
openssl req -new -x509 -key ecdsa-key.sec1.pem -subj '/CN=sec1' -days 36500 -out ecdsa.pem
rm version-1.csr
