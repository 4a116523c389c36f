//! Invalid input results in a client error, never in a server error.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use crate::{
    certificates::Certificate,
    permissions::{BY_CREDENTIAL, PERMISSIONS, address, stored},
};

/// Unusual JSON values for a field.
const ODD_VALUES: [&str; 20] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "18446744073709551616",
    "1e308",
    "1e999",
    r#""""#,
    r#"" ""#,
    r#""-1""#,
    r#""true""#,
    r#""\u0000""#,
    r#""\ud83d\udd11\u202e""#,
    r#""../../etc/passwd""#,
    r#""'; drop table credential; --""#,
    "[]",
    r#"[null,[],{},"",1e400]"#,
    "{}",
    r#"{"":{"":null},"type":{}}"#,
];

#[tokio::test]
async fn an_odd_field_in_a_set_request_is_not_a_server_error() {
    let server = Server::start().await;
    for (credential_type, value) in [
        ("value", r#""v""#),
        ("password", r#""p""#),
        ("json", "{}"),
        ("user", r#"{"username":"u","password":"p"}"#),
        ("certificate", r#"{"certificate":"c"}"#),
        ("rsa", r#"{"public_key":"p"}"#),
        ("ssh", r#"{"public_key":"p"}"#),
    ] {
        for odd in ODD_VALUES {
            let typed = format!(r#""{credential_type}""#);
            for body in [
                format!(r#"{{"name":{odd},"type":{typed},"value":{value}}}"#),
                format!(r#"{{"name":"/a","type":{odd},"value":{value}}}"#),
                format!(r#"{{"name":"/b/{credential_type}","type":{typed},"value":{odd}}}"#),
                format!(r#"{{"name":"/c","type":{typed},"value":{value},"metadata":{odd}}}"#),
            ] {
                expect_no_server_error(&server, Method::PUT, "/api/v1/data", &body).await;
            }
        }
    }
}

#[tokio::test]
async fn an_odd_field_in_a_value_is_not_a_server_error() {
    let server = Server::start().await;
    for (credential_type, fields) in [
        ("user", &["username", "password", "password_hash"][..]),
        ("rsa", &["public_key", "private_key"]),
        (
            "ssh",
            &["public_key", "private_key", "public_key_fingerprint"],
        ),
        (
            "certificate",
            &[
                "ca",
                "ca_name",
                "certificate",
                "private_key",
                "transitional",
            ],
        ),
    ] {
        for field in fields {
            for odd in ODD_VALUES {
                let body = format!(
                    r#"{{"name":"/{credential_type}","type":"{credential_type}","value":{{"{field}":{odd}}}}}"#
                );
                expect_no_server_error(&server, Method::PUT, "/api/v1/data", &body).await;
            }
        }
    }
}

#[tokio::test]
async fn an_odd_field_in_a_generate_request_is_not_a_server_error() {
    let server = Server::start().await;
    for odd in ODD_VALUES {
        for body in [
            format!(r#"{{"name":{odd},"type":"password"}}"#),
            format!(r#"{{"name":"/a","type":{odd}}}"#),
            format!(r#"{{"name":"/b","type":"password","mode":{odd}}}"#),
            format!(r#"{{"name":"/c","type":"password","overwrite":{odd}}}"#),
            format!(r#"{{"name":"/d","type":"password","parameters":{odd}}}"#),
            format!(r#"{{"name":"/e","type":"certificate","parameters":{odd}}}"#),
            format!(r#"{{"name":"/f","type":"password","metadata":{odd}}}"#),
            format!(r#"{{"name":"/g","type":"user","value":{odd}}}"#),
            format!(r#"{{"name":"/h","type":"user","value":{{"username":{odd}}}}}"#),
            format!(r#"{{"name":"/b","regenerate":{odd}}}"#),
        ] {
            expect_no_server_error(&server, Method::POST, "/api/v1/data", &body).await;
        }
    }
}

#[tokio::test]
async fn an_odd_parameter_is_not_a_server_error() {
    let server = Server::start().await;
    let flags = [
        "exclude_upper",
        "exclude_lower",
        "exclude_number",
        "include_special",
    ];
    let texts = [
        "common_name",
        "organization",
        "organization_unit",
        "locality",
    ];
    let lists = ["alternative_names", "key_usage", "extended_key_usage"];
    let others = ["country", "key_length", "duration", "ca", "is_ca"];
    let certificate = texts.iter().chain(&lists).chain(&others);
    let parameters = flags
        .iter()
        .chain(&["length"])
        .map(|parameter| ("password", "", *parameter))
        .chain([
            ("user", "", "username"),
            ("ssh", "", "ssh_comment"),
            ("rsa", "", "key_length"),
        ])
        .chain(certificate.map(|parameter| {
            (
                "certificate",
                r#""state":"S","self_sign":true,"#,
                *parameter,
            )
        }));
    for (credential_type, others, parameter) in parameters {
        for odd in ODD_VALUES {
            let body = format!(
                r#"{{"name":"/{credential_type}","type":"{credential_type}","parameters":{{{others}"{parameter}":{odd}}}}}"#
            );
            expect_no_server_error(&server, Method::POST, "/api/v1/data", &body).await;
        }
    }
}

#[tokio::test]
async fn an_odd_regenerate_or_interpolate_body_is_not_a_server_error() {
    let server = Server::start().await;
    for odd in ODD_VALUES {
        for (path, body) in [
            ("/api/v1/regenerate", format!(r#"{{"name":{odd}}}"#)),
            (
                "/api/v1/regenerate",
                format!(r#"{{"name":"/a","metadata":{odd}}}"#),
            ),
            ("/api/v1/interpolate", odd.to_owned()),
            ("/api/v1/interpolate", format!(r#"{{"s":{odd}}}"#)),
            ("/api/v1/interpolate", format!(r#"{{"s":[{odd}]}}"#)),
            (
                "/api/v1/interpolate",
                format!(r#"{{"s":[{{"credentials":{odd}}}]}}"#),
            ),
            (
                "/api/v1/interpolate",
                format!(r#"{{"s":[{{"credentials":{{"credhub-ref":{odd}}}}}]}}"#),
            ),
        ] {
            expect_no_server_error(&server, Method::POST, path, &body).await;
        }
    }
}

#[tokio::test]
async fn an_odd_certificate_request_field_is_not_a_server_error() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let regenerate = certificate.path("regenerate");
    let update = certificate.path("update_transitional_version");
    let versions = certificate.path("versions");
    for odd in ODD_VALUES {
        for field in [
            "set_as_transitional",
            "allow_transitional_parent_to_sign",
            "key_length",
            "duration",
            "metadata",
        ] {
            let body = format!(r#"{{"{field}":{odd}}}"#);
            expect_no_server_error(&server, Method::POST, &regenerate, &body).await;
        }
        let body = format!(r#"{{"version":{odd}}}"#);
        expect_no_server_error(&server, Method::PUT, &update, &body).await;
        for body in [
            format!(r#"{{"value":{odd}}}"#),
            format!(r#"{{"value":{{"certificate":"c"}},"transitional":{odd}}}"#),
            format!(r#"{{"value":{{"certificate":{odd},"ca_name":{odd}}}}}"#),
            format!(r#"{{"value":{{"certificate":"c","private_key":{odd}}}}}"#),
        ] {
            expect_no_server_error(&server, Method::POST, &versions, &body).await;
        }
        let body = format!(r#"{{"signed_by":{odd}}}"#);
        expect_no_server_error(&server, Method::POST, "/api/v1/bulk-regenerate", &body).await;
    }
}

#[tokio::test]
async fn an_odd_query_is_not_a_server_error() {
    let server = Server::start().await;
    for odd in [
        "",
        "%00",
        "%FF",
        "%ZZ",
        "%",
        "%F0%9F%94%91",
        "-1",
        "1e9",
        "null",
        "true",
        "[]",
        "'",
        "%22",
        "%5C",
        "*",
        "a%20b",
        "..%2F..",
        "+",
        "&&=&",
        "%E2%80%AE",
    ] {
        for parameter in [
            "name",
            "path",
            "name-like",
            "versions",
            "current",
            "expires-within-days",
        ] {
            for query in [
                format!("{parameter}={odd}"),
                format!("name=/a&{parameter}={odd}"),
                format!("path=&{parameter}={odd}"),
                format!("{odd}={odd}"),
            ] {
                let path = format!("/api/v1/data?{query}");
                expect_no_server_error(&server, Method::GET, &path, "").await;
                expect_no_server_error(&server, Method::DELETE, &path, "").await;
            }
        }
        expect_no_server_error(&server, Method::GET, &format!("/api/v1/data/{odd}"), "").await;
    }
}

async fn expect_no_server_error(server: &Server, method: Method, path: &str, body: &str) {
    let request = server
        .authorized(method.clone(), path)
        .body(body.to_owned());
    let response = server.send(request).await;
    assert!(
        response.status < 500,
        "{method} {path} {body}: {response:?}"
    );
    if response.status >= 400 {
        assert!(
            !response.error().is_empty(),
            "{method} {path} {body}: {response:?}"
        );
    }
}

// Requests about permissions.

/// Unusual JSON values for a field of a permission.
const ODD_PERMISSION_VALUES: [&str; 18] = [
    "null",
    "true",
    "0",
    "1e999",
    r#""""#,
    r#"" ""#,
    r#""/""#,
    r#""*""#,
    r#""\u0000""#,
    r#""\ud83d\udd11\u202e""#,
    r#""../../etc/passwd""#,
    r#""'; drop table permission; --""#,
    "[]",
    r#"[null,[],{},"",1e400]"#,
    r#"["read",null]"#,
    "{}",
    r#"[{"path":"/a","actor":"x","operations":["read"],"path":"/b"}]"#,
    r#"{"":{"":null},"operations":{}}"#,
];

#[tokio::test]
async fn an_odd_permission_field_is_not_a_server_error() {
    let server = Server::start().await;
    let one = address(&server.grant("/a", "someone", &["read"]).await);
    for odd in ODD_PERMISSION_VALUES {
        for body in [
            format!(r#"{{"path":{odd},"actor":"someone","operations":["read"]}}"#),
            format!(r#"{{"path":"/a","actor":{odd},"operations":["read"]}}"#),
            format!(r#"{{"path":"/a","actor":"someone","operations":{odd}}}"#),
            format!(r#"{{"path":"/a","actor":"someone","operations":[{odd}]}}"#),
            format!(r#"{{"operations":{odd}}}"#),
            odd.to_owned(),
        ] {
            for (method, path) in [
                (Method::POST, PERMISSIONS),
                (Method::PUT, &one),
                (Method::PATCH, &one),
            ] {
                expect_no_server_error(&server, method, path, &body).await;
            }
            for body in [
                format!(r#"{{"credential_name":"/a","permissions":[{body}]}}"#),
                format!(r#"{{"credential_name":"/a","permissions":{odd}}}"#),
                format!(r#"{{"credential_name":{odd},"permissions":[{body}]}}"#),
            ] {
                expect_no_server_error(&server, Method::POST, BY_CREDENTIAL, &body).await;
            }
        }
    }
    assert!(stored(&server, "/a", "someone").await.is_some());
}

#[tokio::test]
async fn an_odd_permission_query_is_not_a_server_error() {
    let server = Server::start().await;
    let slashes = "/".repeat(3_000);
    for odd in [
        "%00",
        "%FF",
        "%",
        "*",
        "%2F%2A%2F%2A",
        "'",
        "%27%20or%201=1",
        "a%0d%0ab",
        &slashes,
        &"x/".repeat(1_500),
        &"%2A".repeat(1_000),
    ] {
        for requested in [
            format!("{PERMISSIONS}?path={odd}&actor=x"),
            format!("{PERMISSIONS}?path=/a&actor={odd}"),
            format!("{PERMISSIONS}/explain?path={odd}&actor=x&operation=read"),
            format!("{PERMISSIONS}/explain?path=/a&actor={odd}&operation=read"),
            format!("{PERMISSIONS}/explain?path=/a&actor=x&operation={odd}"),
            format!("{BY_CREDENTIAL}?credential_name={odd}"),
            format!("/api/v1/data?name={odd}"),
        ] {
            expect_no_server_error(&server, Method::GET, &requested, "").await;
        }
        let requested = format!("{BY_CREDENTIAL}?credential_name={odd}&actor={odd}");
        expect_no_server_error(&server, Method::DELETE, &requested, "").await;
    }
}
