//! Invalid input results in a client error, never in a server error.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use crate::{
    certificates::Certificate,
    permissions::{address, stored},
};

/// Unusual JSON values for a field.
const ODD_VALUES: [&str; 23] = [
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
    r#""*""#,
    r#""-1""#,
    r#""true""#,
    r#""\u0000""#,
    r#""\ud83d\udd11\u202e""#,
    r#""../../etc/passwd""#,
    r#""'; drop table credential; --""#,
    "[]",
    r#"[null,[],{},"",1e400]"#,
    r#"["read",null]"#,
    r#"[{"path":"/a","actor":"x","operations":["read"],"path":"/b"}]"#,
    "{}",
    r#"{"":{"":null},"type":{},"operations":{}}"#,
];

/// Requests, one per line. Each of the values replaces `ODD`. Paths of a stored certificate and permission replace the other names.
const BODIES: &str = r#"
    PUT /api/v1/data {"name":ODD,"type":"value","value":"v"}
    PUT /api/v1/data {"name":"/a","type":ODD,"value":"v"}
    PUT /api/v1/data {"name":"/v","type":"value","value":ODD,"metadata":ODD}
    PUT /api/v1/data {"name":"/w","type":"password","value":ODD}
    PUT /api/v1/data {"name":"/j","type":"json","value":ODD}
    PUT /api/v1/data {"name":"/j","type":"json","value":{},"metadata":ODD}
    PUT /api/v1/data {"name":"/u","type":"user","value":ODD}
    PUT /api/v1/data {"name":"/u","type":"user","value":{"username":ODD,"password":"p"}}
    PUT /api/v1/data {"name":"/u","type":"user","value":{"password":ODD}}
    PUT /api/v1/data {"name":"/u","type":"user","value":{"password":"p","password_hash":ODD}}
    PUT /api/v1/data {"name":"/r","type":"rsa","value":ODD}
    PUT /api/v1/data {"name":"/r","type":"rsa","value":{"public_key":ODD}}
    PUT /api/v1/data {"name":"/r","type":"rsa","value":{"private_key":ODD}}
    PUT /api/v1/data {"name":"/s","type":"ssh","value":ODD}
    PUT /api/v1/data {"name":"/s","type":"ssh","value":{"public_key":ODD}}
    PUT /api/v1/data {"name":"/s","type":"ssh","value":{"private_key":ODD}}
    PUT /api/v1/data {"name":"/s","type":"ssh","value":{"public_key":"p","public_key_fingerprint":ODD}}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":ODD}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":{"ca":ODD}}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":{"ca_name":ODD}}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":{"certificate":ODD}}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":{"private_key":ODD}}
    PUT /api/v1/data {"name":"/c","type":"certificate","value":{"transitional":ODD}}
    POST /api/v1/data {"name":ODD,"type":"password"}
    POST /api/v1/data {"name":"/a","type":ODD}
    POST /api/v1/data {"name":"/p","type":"password","mode":ODD}
    POST /api/v1/data {"name":"/p","type":"password","overwrite":ODD}
    POST /api/v1/data {"name":"/p","type":"password","parameters":ODD}
    POST /api/v1/data {"name":"/p","type":"password","metadata":ODD}
    POST /api/v1/data {"name":"/p","regenerate":ODD}
    POST /api/v1/data {"name":"/gu","type":"user","value":ODD}
    POST /api/v1/data {"name":"/gu","type":"user","value":{"username":ODD}}
    POST /api/v1/data {"name":"/gu","type":"user","parameters":{"username":ODD}}
    POST /api/v1/data {"name":"/gc","type":"certificate","parameters":ODD}
    POST /api/v1/data {"name":"/gs","type":"ssh","parameters":{"ssh_comment":ODD}}
    POST /api/v1/data {"name":"/gr","type":"rsa","parameters":{"key_length":ODD}}
    POST /api/v1/regenerate {"name":ODD}
    POST /api/v1/regenerate {"name":"/p","metadata":ODD}
    POST /api/v1/bulk-regenerate {"signed_by":ODD}
    POST /api/v1/interpolate ODD
    POST /api/v1/interpolate {"s":ODD}
    POST /api/v1/interpolate {"s":[ODD]}
    POST /api/v1/interpolate {"s":[{"credentials":ODD}]}
    POST /api/v1/interpolate {"s":[{"credentials":{"credhub-ref":ODD}}]}
    POST CERTIFICATE/regenerate {"set_as_transitional":ODD}
    POST CERTIFICATE/regenerate {"allow_transitional_parent_to_sign":ODD}
    POST CERTIFICATE/regenerate {"key_length":ODD}
    POST CERTIFICATE/regenerate {"duration":ODD}
    POST CERTIFICATE/regenerate {"metadata":ODD}
    PUT CERTIFICATE/update_transitional_version {"version":ODD}
    POST CERTIFICATE/versions {"value":ODD}
    POST CERTIFICATE/versions {"value":{"certificate":"c"},"transitional":ODD}
    POST CERTIFICATE/versions {"value":{"certificate":ODD,"ca_name":ODD}}
    POST CERTIFICATE/versions {"value":{"certificate":"c","private_key":ODD}}
    POST /api/v2/permissions ODD
    POST /api/v2/permissions {"path":ODD,"actor":"someone","operations":["read"]}
    POST /api/v2/permissions {"path":"/p","actor":ODD,"operations":["read"]}
    POST /api/v2/permissions {"path":"/p","actor":"someone","operations":ODD}
    POST /api/v2/permissions {"path":"/p","actor":"someone","operations":[ODD]}
    PUT PERMISSION ODD
    PUT PERMISSION {"path":ODD,"actor":"someone","operations":["read"]}
    PUT PERMISSION {"path":"/p","actor":ODD,"operations":["read"]}
    PUT PERMISSION {"path":"/p","actor":"someone","operations":ODD}
    PUT PERMISSION {"path":"/p","actor":"someone","operations":[ODD]}
    PATCH PERMISSION ODD
    PATCH PERMISSION {"operations":ODD}
    POST /api/v1/permissions {"credential_name":ODD,"permissions":[{"actor":"x","operations":["read"]}]}
    POST /api/v1/permissions {"credential_name":"/p","permissions":ODD}
    POST /api/v1/permissions {"credential_name":"/p","permissions":[{"path":ODD,"actor":"x","operations":["read"]}]}
    POST /api/v1/permissions {"credential_name":"/p","permissions":[{"actor":ODD,"operations":["read"]}]}
    POST /api/v1/permissions {"credential_name":"/p","permissions":[{"actor":"x","operations":ODD}]}
"#;

/// The parameters of a password and of a certificate.
const PARAMETERS: [(&str, &str, &[&str]); 3] = [
    (
        "password",
        "",
        &[
            "exclude_upper",
            "exclude_lower",
            "exclude_number",
            "include_special",
            "length",
        ],
    ),
    (
        "certificate",
        r#""state":"S","self_sign":true,"key_type":"ecdsa-p256","#,
        &[
            "common_name",
            "organization",
            "organization_unit",
            "locality",
            "alternative_names",
            "key_usage",
            "extended_key_usage",
            "country",
            "duration",
            "ca",
            "is_ca",
        ],
    ),
    (
        "certificate",
        r#""common_name":"c","self_sign":true,"#,
        &["key_length"],
    ),
];

#[tokio::test]
async fn an_odd_field_is_not_a_server_error() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    let certificate = Certificate::generate(&server, "/certificate", parameters).await;
    let permission = address(&server.grant("/p", "someone", &["read"]).await);
    let mut templates: Vec<String> = BODIES
        .trim()
        .lines()
        .map(|line| line.trim().to_owned())
        .collect();
    for (credential_type, others, names) in PARAMETERS {
        templates.extend(names.iter().map(|name| {
            format!(
                r#"POST /api/v1/data {{"name":"/{credential_type}","type":"{credential_type}","parameters":{{{others}"{name}":ODD}}}}"#
            )
        }));
    }
    for template in templates {
        let template = template
            .replace("CERTIFICATE", certificate.path("").trim_end_matches('/'))
            .replace("PERMISSION", &permission);
        for odd in ODD_VALUES {
            let request = template.replace("ODD", odd);
            let mut parts = request.splitn(3, ' ');
            let mut part = || parts.next().unwrap();
            let (method, path, body) = (part(), part(), part());
            expect_no_server_error(&server, method.parse().unwrap(), path, body).await;
        }
    }
    assert!(stored(&server, "/p", "someone").await.is_some());
}

async fn expect_no_server_error(server: &Server, method: Method, path: &str, body: &str) {
    let request = server
        .authorized(method.clone(), path)
        .body(body.to_owned());
    let response = server.send(request).await;
    let what = format!("{method} {path} {body}: {response:?}");
    assert!(response.status < 500, "{what}");
    if response.status >= 400 && !response.body.is_empty() {
        assert!(!response.error().is_empty(), "{what}");
    }
}
