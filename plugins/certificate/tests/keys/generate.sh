#!/bin/sh
# Creates the certificates in this folder, which represent certificates set by callers. Their keys are deleted.
set -eu
cd "$(dirname "$0")"
key=$(mktemp)
trap 'rm -f "$key"' EXIT

# All types of parts that parameters can express, from another program.
openssl req -x509 -newkey rsa:3072 -nodes -keyout "$key" -sha384 -days 7300 -out expressible.pem \
    -subj '/L=Berlin/CN=full, example/O=A\+B' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
    -addext 'extendedKeyUsage=clientAuth,serverAuth' \
    -addext 'subjectAltName=DNS:*.example.com,IP:2001:db8::1,IP:10.0.0.1' 2>/dev/null

# An attribute without a parameter, a duplicate attribute, and other types of alternative names.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -days 30 -out foreign_names.pem \
    -subj '/CN=foreign/OU=one/OU=two/serialNumber=7' \
    -addext 'subjectAltName=email:ada@example.com,DNS:example.com,URI:spiffe://example.com/ada' 2>/dev/null

# A key that is not RSA.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -days 30 -out ecdsa.pem \
    -subj '/CN=ecdsa' 2>/dev/null

# A certificate whose issuer has the same name and another key.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -days 30 -out /dev/null -subj '/CN=same' 2>/dev/null
openssl req -new -newkey rsa:2048 -nodes -keyout "$key.own" -out "$key.csr" -subj '/CN=same' 2>/dev/null
openssl req -x509 -key "$key" -days 30 -out "$key.ca" -subj '/CN=same' 2>/dev/null
openssl x509 -req -in "$key.csr" -CA "$key.ca" -CAkey "$key" -set_serial 2 -days 30 -out same_name.pem 2>/dev/null
rm -f "$key.own" "$key.csr" "$key.ca"

# Most types of parts that parameters can't express.
cat >"$key.settings" <<SETTINGS
[req]
distinguished_name = subject
prompt = no
x509_extensions = extensions
string_mask = default
[subject]
0.DC = org
1.DC = example
O = "A, B + C"
CN = "#kept \"quoted\""
+serialNumber = 7
0.1.3.6.1.4.1.55555.1 = unknown
C = AT
[extensions]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature,keyAgreement
extendedKeyUsage = critical,serverAuth,1.3.6.1.4.1.311.20.2.2,clientAuth
subjectAltName = critical,@names
[names]
dirName = directory
otherName = 1.3.6.1.4.1.311.20.2.3;UTF8:ada@example.com
DNS.1 = b.example
RID = 1.2.3.4
email.1 = ada@example.com
URI.1 = urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
URI.2 = spiffe://example.org/ada
IP.1 = 10.0.0.1
[directory]
CN = directory
SETTINGS
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-384 -nodes -keyout "$key" -days 5000 -out kept.pem \
    -utf8 -multivalue-rdn -config "$key.settings" 2>/dev/null
rm -f "$key.settings"

# A subject that differs from a generated one only in the order of its attributes.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -days 30 -out reordered.pem \
    -subj '/L=Berlin/CN=x' 2>/dev/null

# Keys of other types and lengths.
openssl req -x509 -newkey ed25519 -nodes -keyout "$key" -days 30 -out ed25519.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-521 -nodes -keyout "$key" -days 30 -out p521.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp256k1 -nodes -keyout "$key" -days 30 -out secp256k1.pem \
    -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa-pss -pkeyopt rsa_keygen_bits:2048 -nodes -keyout "$key" -days 30 -out rsa_pss.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa:1024 -nodes -keyout "$key" -days 30 -out rsa_1024.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa:2560 -nodes -keyout "$key" -days 30 -out rsa_2560.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa:5120 -nodes -keyout "$key" -days 30 -out rsa_5120.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa:512 -nodes -keyout "$key" -days 30 -out rsa_512.pem -subj '/CN=x' 2>/dev/null

# Signatures with a hash or a padding that is unusual for the key.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -sha512 -days 30 \
    -out ecdsa_sha512.pem -subj '/CN=x' 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-1 -days 30 \
    -out signed_with_pss.pem -subj '/CN=x' 2>/dev/null
for hash in sha1 sha224; do
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -$hash -sigopt rsa_padding_mode:pss -days 30 \
        -out signed_with_pss_$hash.pem -subj '/CN=x' 2>/dev/null
done

# SHA-1 with RSA by its older identifier, which OpenSSL reads but does not write.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -sha1 -days 30 -subj '/CN=x' 2>/dev/null |
    openssl asn1parse -strparse 4 -noout -out "$key.body"
perl -0777 -pi -e 's/\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05\x05\x00/\x30\x09\x06\x05\x2b\x0e\x03\x02\x1d\x05\x00/;
    substr($_, 2, 2) = pack("n", length($_) - 4)' "$key.body"
openssl dgst -sha1 -sign "$key" -out "$key.signature" "$key.body"
perl -0777 -e '$_ = join("\x30\x09\x06\x05\x2b\x0e\x03\x02\x1d\x05\x00\x03\x82\x01\x01\x00", <>); print "\x30\x82", pack("n", length), $_' \
    "$key.body" "$key.signature" | openssl x509 -inform DER -out signed_with_sha1_of_oiw.pem
rm -f "$key.body" "$key.signature"

# A certificate whose issuer has the same name and a key of another type.
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key.own" -out "$key.csr" -subj '/CN=same' 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$key" -days 30 -out "$key.ca" -subj '/CN=same' 2>/dev/null
openssl x509 -req -in "$key.csr" -CA "$key.ca" -CAkey "$key" -set_serial 2 -days 30 -out other_type.pem 2>/dev/null
rm -f "$key.own" "$key.csr" "$key.ca"

# A CA with all types of constraints, and a leaf with an unknown critical extension, which that CA signed.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -days 30 -out limited.pem \
    -subj '/CN=limited' -addext 'basicConstraints=critical,CA:TRUE,pathlen:1' -addext 'keyUsage=keyCertSign,cRLSign' \
    -addext 'nameConstraints=critical,permitted;DNS:example.org' -addext 'certificatePolicies=1.2.3.4' \
    -addext 'policyConstraints=critical,requireExplicitPolicy:0' -addext 'inhibitAnyPolicy=critical,0' 2>/dev/null
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key.own" -out "$key.csr" -subj '/CN=leaf' 2>/dev/null
printf 'certificatePolicies=1.2.3.4\n1.2.3.5=critical,DER:0500\n' >"$key.extensions"
openssl x509 -req -in "$key.csr" -CA limited.pem -CAkey "$key" -set_serial 2 -days 30 -extfile "$key.extensions" \
    -out unknown_critical.pem 2>/dev/null
rm -f "$key.own" "$key.csr" "$key.extensions"

# An ECDSA key with the usage keyEncipherment, which RFC 8813 forbids.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" -days 30 -out enciphering.pem \
    -subj '/CN=x' -addext 'keyUsage=critical,digitalSignature,keyEncipherment' 2>/dev/null
