//! Logins on the provider's pages: with a code on any device, or with the browser on this machine.

use std::{fs, os::unix::fs::PermissionsExt, time::Instant};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use keywright_harness::{Reply, Shell, Stub, Text};
use serde_json::{Value, json};

use super::{
    discovery::{openid, requests_at, shell, tokens},
    session,
};

/// Returns a response of the device authorization endpoint.
fn device(changes: &Value) -> Reply {
    let mut authorization = json!({
        "device_code": "hunter2", "user_code": "WDJB-MJHT",
        "verification_uri": "https://id.example/device", "expires_in": 600, "interval": 0,
    });
    let fields = authorization.as_object_mut().unwrap();
    fields.extend(changes.as_object().unwrap().clone());
    Reply::new(200, &authorization.to_string())
}

fn refused(code: &str) -> Reply {
    Reply::new(400, &json!({ "error": code }).to_string())
}

const DEVICE: [&str; 4] = ["login", "--device", "--client-id", "cli"];

#[test]
fn only_https_pages_are_shown_to_the_user() {
    for (field, page) in [
        ("verification_uri", "javascript:alert(1)"),
        ("verification_uri", "http://id.example/device"),
        ("verification_uri", "https://id.example@other.example/"),
        ("verification_uri_complete", "file:///etc/passwd"),
    ] {
        let stub = Stub::start(move |request, _, url| {
            let device = || device(&json!({ field: page }));
            openid(request, url, &json!({})).unwrap_or_else(device)
        });
        let run = shell(&stub).run(&DEVICE).expect(1);
        let expected = format!("{field} is not an https address");
        run.errors.assert_contains(&expected);
        run.errors.assert_lacks(page);
    }
}

#[test]
fn polling_respects_the_interval_of_the_provider() {
    let stub = Stub::start(|request, before, url| {
        openid(request, url, &json!({})).unwrap_or_else(|| match (request.line.as_str(), before) {
            ("POST /device", _) => device(&json!({
                "verification_uri_complete": "https://id.example/device?code=WDJB-MJHT",
            })),
            (_, 0) => refused("authorization_pending"),
            (_, 1) => refused("slow_down"),
            _ => tokens(),
        })
    });
    let shell = shell(&stub);
    let begun = Instant::now();
    let run = shell.run(&[&DEVICE[..], &["--scope", "x y"]].concat());
    let run = run.expect(0);
    // Two intervals of at least one second, and an interval that is five seconds longer.
    assert!(begun.elapsed().as_secs() >= 8, "{:?}", begun.elapsed());
    for words in [
        "https://id.example/device ",
        "WDJB-MJHT",
        "device?code=WDJB-MJHT",
    ] {
        run.errors.assert_contains(words);
    }
    run.errors.assert_lacks("hunter2");
    let requested = &requests_at(&stub, "POST /device")[0].body;
    assert_eq!(requested, "scope=x+y&client_id=cli");
    let polls = requests_at(&stub, "POST /token");
    assert_eq!(polls.len(), 3);
    let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=hunter2&client_id=cli";
    assert!(polls.iter().all(|poll| poll.body == form), "{polls:?}");
    assert_eq!(session(&shell).unwrap()["access_token"], "access");
    shell.run("get /a").expect(0);
}

#[test]
fn a_code_that_is_refused_or_expires_ends_with_status_5() {
    for (authorization, response, words, polls) in [
        (json!({}), "access_denied", "access_denied", 1),
        (json!({}), "expired_token", "not completed in time", 1),
        (json!({"expires_in": 0}), "", "not completed in time", 0),
        (
            json!({"expires_in": 2}),
            "authorization_pending",
            "not completed in time",
            1,
        ),
        (
            json!({"interval": u64::MAX}),
            "",
            "not completed in time",
            0,
        ),
    ] {
        let stub = Stub::start(move |request, _, url| {
            openid(request, url, &json!({})).unwrap_or_else(|| match request.line.as_str() {
                "POST /device" => device(&authorization),
                _ => refused(response),
            })
        });
        let run = shell(&stub).run(&DEVICE).expect(5);
        run.errors.assert_contains(words);
        let count = requests_at(&stub, "POST /token").len();
        assert!((polls..=polls + 1).contains(&count), "{words}: {count}");
    }
}

#[test]
fn a_provider_without_the_endpoint_is_reported() {
    for (option, endpoint) in [
        ("--device", "device_authorization_endpoint"),
        ("--browser", "authorization_endpoint"),
    ] {
        let without = json!({ endpoint: null });
        let stub = Stub::start(move |request, _, url| {
            openid(request, url, &without).unwrap_or_else(|| refused("invalid_request"))
        });
        let run = shell(&stub).run(&["login", option, "--client-id", "cli"]);
        let run = run.expect(1);
        run.errors.assert_contains(endpoint);
        run.errors.assert_lacks(&format!("`{option}`"));
    }
}

/// Writes a script that acts as a browser, and returns its path. The script requests the redirect URI, first with a forged
/// state, then with these parameters. `STATE` is replaced by the state.
fn browser(shell: &Shell, parameters: &str) -> String {
    let script = format!(
        r#"#!/bin/bash
set -eu
printf %s "$1" >"$HOME/page"
state=$(sed 's/.*[?&]state=\([^&]*\).*/\1/' <<<"$1")
port=$(sed 's/.*127\.0\.0\.1%3A\([0-9]*\)%2Fcallback.*/\1/' <<<"$1")
request() {{
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET /callback?%s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n' "$1" >&3
    cat <&3
}}
request "code=forged&state=forged" >"$HOME/forged"
parameters='{parameters}'
request "${{parameters//STATE/$state}}" >"$HOME/seen"
"#
    );
    let file = shell.file("browser");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

/// Returns the parameters of the page that the browser opened.
fn page(shell: &Shell) -> Vec<(String, String)> {
    let page = fs::read_to_string(shell.file("page")).unwrap();
    let (_, query) = page.split_once('?').unwrap();
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn the_code_from_the_browser_is_exchanged_with_the_verifier() {
    let stub =
        Stub::start(|request, _, url| openid(request, url, &json!({})).unwrap_or_else(tokens));
    let shell = shell(&stub);
    let iss = stub.url();
    let program = browser(&shell, &format!("code=the+code&state=STATE&iss={iss}"));
    let shell = shell.variable("BROWSER", &format!("/absent/browser::{program}"));
    let login = ["login", "--browser", "--client-id", "cli"];
    let login = [
        &login[..],
        &["--scope", "x", "--resource", "https://api.example"],
    ]
    .concat();
    let run = shell.run(&login).expect(0);
    run.errors
        .assert_contains("/authorize?tenant=a&response_type=code");
    run.errors.assert_contains("Waiting for the browser");
    assert_eq!(session(&shell).unwrap()["refresh_token"], "refresh");
    let seen = |name| fs::read_to_string(shell.file(name)).unwrap();
    assert!(seen("forged").starts_with("HTTP/1.1 404"));
    assert!(seen("seen").contains("return to the terminal"));

    let page = page(&shell);
    let get = |name: &str| {
        let found = page.iter().find(|(have, _)| have == name);
        found.map(|(_, value)| value.as_str()).unwrap()
    };
    assert_eq!((get("client_id"), get("scope")), ("cli", "x"));
    assert_eq!(get("resource"), "https%3A%2F%2Fapi.example");
    assert_eq!(get("code_challenge_method"), "S256");
    assert_eq!(get("state").len(), 43);
    let form = requests_at(&stub, "POST /token")[0].body.clone();
    let (before, verifier) = form.split_once("&code_verifier=").unwrap();
    let redirect_uri = get("redirect_uri");
    let expected =
        format!("grant_type=authorization_code&code=the+code&redirect_uri={redirect_uri}");
    assert_eq!(before, expected);
    let (verifier, rest) = verifier.split_once('&').unwrap();
    assert_eq!(rest, "resource=https%3A%2F%2Fapi.example&client_id=cli");
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    assert_eq!(get("code_challenge"), URL_SAFE_NO_PAD.encode(hash));
    run.errors.assert_lacks(verifier);
}

#[test]
fn no_code_is_exchanged_after_a_refusal_or_from_another_issuer() {
    for (parameters, words) in [
        (
            "error=access_denied&error_description=not+today&state=STATE&iss=ISSUER",
            "not today",
        ),
        (
            "error=access_denied&state=STATE&iss=ISSUER",
            "access_denied",
        ),
        ("code=c&state=STATE", "is missing or names another provider"),
        (
            "code=c&state=STATE&iss=https://evil.example",
            "is missing or names another provider",
        ),
        (
            "code=c&state=STATE&iss=ISSUER/",
            "is missing or names another provider",
        ),
    ] {
        let stub =
            Stub::start(|request, _, url| openid(request, url, &json!({})).unwrap_or_else(tokens));
        let shell = shell(&stub);
        let program = browser(&shell, &parameters.replace("ISSUER", &stub.url()));
        let shell = shell.variable("BROWSER", &program);
        let run = shell.run("login --browser").expect(5);
        run.errors.assert_contains(words);
        assert!(requests_at(&stub, "POST /token").is_empty());
        assert!(session(&shell).is_none());
    }
}

#[test]
fn an_undeclared_issuer_parameter_may_be_missing() {
    let changes = json!({"authorization_response_iss_parameter_supported": null});
    let stub =
        Stub::start(move |request, _, url| openid(request, url, &changes).unwrap_or_else(tokens));
    let shell = shell(&stub);
    let program = browser(&shell, "code=c&state=STATE");
    let shell = shell.variable("BROWSER", &program);
    shell.run("login --browser").expect(0);
}

#[test]
fn a_provider_without_s256_is_not_used_in_the_browser() {
    let stub = Stub::start(|request, _, url| {
        let changes = json!({"code_challenge_methods_supported": ["plain"]});
        openid(request, url, &changes).unwrap_or_else(tokens)
    });
    let run = shell(&stub).run("login --browser").expect(1);
    run.errors.assert_contains("S256");
}
