//! Example versions from a real server.

use serde_json::{Value, json};

/// A version of type json.
pub(crate) fn json_version() -> Value {
    json!({
        "type": "json",
        "version_created_at": "2026-11-22T01:27:52Z",
        "id": "2ae1d8fe-5561-4d84-a447-1bb4003bece7",
        "name": "/demo/database",
        "metadata": {"owner": "shop"},
        "value": {"host": "db.example", "port": 5432},
    })
}

/// A version of type user.
pub(crate) fn user_version() -> Value {
    json!({
        "type": "user",
        "version_created_at": "2026-11-22T01:27:52Z",
        "id": "2202d20a-20f5-4cc7-890d-6a5f3c993e94",
        "name": "/demo/user",
        "metadata": null,
        "value": {
            "username": "ada",
            "password": "correct horse",
            "password_hash": "$6$VxJxalOy$B7uLKkFnWgFxZBd9TwUZJk/19g8f/Fj0ZA.WXLNTas7c9WP.vvirxdyPDYlH4aO/1DbKh.QGN9iqOqEfICCJa.",
        },
    })
}

/// A version of type password.
pub(crate) fn password_version() -> Value {
    json!({
        "type": "password",
        "version_created_at": "2026-11-22T01:27:52Z",
        "id": "df2ede65-9a21-46e4-9d67-878a81f41b95",
        "name": "/demo/password",
        "metadata": null,
        "value": "pnvKaNLR4Tj0",
    })
}

/// A version of type certificate, without its key.
pub(crate) fn certificate_version() -> Value {
    json!({
        "type": "certificate",
        "version_created_at": "2026-11-22T01:27:53Z",
        "id": "8f3b4de4-b821-46d6-a28c-52f21f21a18e",
        "name": "/demo/root",
        "metadata": null,
        "value": {"ca": null, "certificate": CERTIFICATE, "private_key": null},
        "transitional": true,
        "certificate_authority": true,
        "self_signed": true,
        "expiry_date": "2027-11-22T01:27:53Z",
    })
}

/// A certificate.
pub(crate) const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBfjCCASOgAwIBAgIUGROaCC3oJcCDjBKcBnbmuQKDC6cwCgYIKoZIzj0EAwIw\n\
FDESMBAGA1UEAwwJRGVtbyByb290MB4XDTI2MTEyMjAxMjc1M1oXDTI3MTEyMjAx\n\
Mjc1M1owFDESMBAGA1UEAwwJRGVtbyByb290MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
AQcDQgAELeB6CUhGpU+GqKbkEs7v2lS64NhpsdBhJtoz++CzSG7Q7rvT9jptzg7q\n\
TzGYf3Tq70JLUnMeW1ImvV7q+Fci5qNTMFEwHwYDVR0jBBgwFoAUYcAVDtiOHdYc\n\
DteqP84Unh5TLqEwHQYDVR0OBBYEFGHAFQ7Yjh3WHA7Xqj/OFJ4eUy6hMA8GA1Ud\n\
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhALOtGdSlQkEk8rDdHbB3xUQl\n\
qJ7vlsi3xFyW2tlrH3tvAiEApry8HchrmdheHFrh2+quh2LofheZ0hwcmzAmnZwk\n\
YEQ=\n\
-----END CERTIFICATE-----\n";
