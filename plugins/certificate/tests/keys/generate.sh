#!/bin/sh
# Makes the certificates beside this script, which stand for those that callers set. Their keys are thrown away.
set -eu
cd "$(dirname "$0")"
key=$(mktemp)
trap 'rm -f "$key"' EXIT

# Everything that parameters can ask for, from another program.
openssl req -x509 -newkey rsa:3072 -nodes -keyout "$key" -sha384 -days 7300 -out expressible.pem \
    -subj '/L=Berlin/CN=full, example/O=A\+B' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
    -addext 'extendedKeyUsage=clientAuth,serverAuth' \
    -addext 'subjectAltName=DNS:*.example.com,IP:2001:db8::1,IP:10.0.0.1' 2>/dev/null

# An attribute that is no parameter, one that is there twice, and alternative names of other kinds.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -days 30 -out foreign_names.pem \
    -subj '/CN=foreign/OU=one/OU=two/serialNumber=7' \
    -addext 'subjectAltName=email:ada@example.com,DNS:example.com,URI:spiffe://example.com/ada' 2>/dev/null

# A key that is not RSA.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -days 30 -out ecdsa.pem \
    -subj '/CN=ecdsa' 2>/dev/null

# Its issuer has the same name, and another key.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -days 30 -out /dev/null -subj '/CN=same' 2>/dev/null
openssl req -new -newkey rsa:2048 -nodes -keyout "$key.own" -out "$key.csr" -subj '/CN=same' 2>/dev/null
openssl req -x509 -key "$key" -days 30 -out "$key.ca" -subj '/CN=same' 2>/dev/null
openssl x509 -req -in "$key.csr" -CA "$key.ca" -CAkey "$key" -set_serial 2 -days 30 -out same_name.pem 2>/dev/null
rm -f "$key.own" "$key.csr" "$key.ca"
