//! Registries that require a login.

use std::fs;

use keywright_harness::{DockerRegistry, Reply, Server, Stub, digest, key_file};

use super::{Workshop, assert_generates, assert_refused, path, protected};

#[tokio::test]
async fn push_and_pull_require_the_login() {
    let Some(registry) = DockerRegistry::start_with_login() else {
        return;
    };
    let workshop = Workshop::new();
    let authority = key_file("ca.pem");
    fs::write(
        workshop.path("password"),
        format!("{}\n", DockerRegistry::PASSWORD),
    )
    .unwrap();
    fs::write(workshop.path("wrong"), "hunter2").unwrap();
    fs::write(workshop.path("docker.json"), registry.docker_config()).unwrap();
    let target = format!("oci://{}/plain:1", registry.host());
    let push = |login: &[&str], status| {
        let arguments = [
            "plain.wasm",
            &*target,
            "--trusted-authorities",
            path(&authority),
        ];
        workshop
            .push(&[&arguments[..], login].concat())
            .expect(status)
    };
    let user = ["--user", DockerRegistry::USER, "--password-file"];
    let refused = push(&[], 1);
    assert!(
        refused.errors.contains("denies anonymous users access to"),
        "{refused:#?}"
    );
    let refused = push(&[&user[..], &["wrong"]].concat(), 1);
    assert!(
        refused
            .errors
            .contains("denies the configured user access to"),
        "{refused:#?}"
    );
    assert!(!refused.errors.contains("hunter2"));
    let pushed = push(&[&user[..], &["password"]].concat(), 0);
    let again = push(&["--docker-config", "docker.json"], 0);
    assert_eq!(pushed.output, again.output);

    let reference = pushed.output.trim_end();
    let options = |login: &str| {
        let section = protected(&registry.host(), login);
        workshop.options(reference, "").extra(&section)
    };
    let denied = [reference, "denies anonymous users access to the manifest"];
    assert_refused(&options(""), &denied);
    let with = |file: &str| {
        let file = workshop.path(file);
        let user = DockerRegistry::USER;
        options(&format!(
            "user = \"{user}\"\npassword_file = \"{}\"",
            file.display()
        ))
    };
    let denied = "denies the configured user access to the manifest";
    let said = assert_refused(&with("wrong"), &[denied]);
    assert!(!said.contains("hunter2"), "{said}");
    let server = Server::start_with(&with("password")).await;
    assert_generates(&server, "/a").await;
    assert!(!server.log().contains(DockerRegistry::PASSWORD));
    drop(server);

    fs::remove_dir_all(workshop.path("cache")).unwrap();
    let file = workshop.path("docker.json");
    let docker = format!("[registry]\ndocker_config = \"{}\"", file.display());
    drop(Server::start_with(&options("").extra(&docker)).await);
}

#[tokio::test]
async fn token_is_fetched_from_the_token_server() {
    let workshop = Workshop::new();
    fs::write(workshop.path("password"), "hunter2").unwrap();
    let component = fs::read(workshop.path("plain.wasm")).unwrap();
    let manifest = manifest(&component);
    let reference_digest = digest(manifest.as_bytes());
    let stub = Stub::start(move |asked, _, url| {
        if asked.line.starts_with("GET /token?") {
            return Reply::new(200, r#"{"token": "granted-token"}"#);
        }
        if !asked.head.contains("authorization: bearer granted-token") {
            let challenge = format!(
                "Bearer realm=\"{url}/token\",service=\"plugins\",scope=\"repository:plain:pull\""
            );
            return Reply::new(401, "").header("WWW-Authenticate", &challenge);
        }
        if asked.line.contains("/manifests/") {
            Reply::new(200, &manifest)
        } else {
            Reply::bytes(&component)
        }
    });
    let host = stub.url().replace("https://", "");
    let password = workshop.path("password");
    let login = format!("user = \"ada\"\npassword_file = \"{}\"", password.display());
    let options = workshop
        .options(&format!("oci://{host}/plain@{reference_digest}"), "")
        .extra(&protected(&host, &login));
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    for secret in ["granted-token", "hunter2"] {
        assert!(!server.log().contains(secret), "{secret}");
    }
    let asked = stub.asked();
    let tokens: Vec<_> = asked
        .iter()
        .filter(|asked| asked.line.contains("/token"))
        .collect();
    assert_eq!(tokens.len(), 1);
    let line = "GET /token?service=plugins&scope=repository%3Aplain%3Apull";
    assert_eq!(tokens[0].line, line);
    assert!(tokens[0].head.contains("authorization: basic "));
    assert_eq!(asked.len(), 4);
}

/// Returns the manifest of a component.
pub(super) fn manifest(component: &[u8]) -> String {
    serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2,
        },
        "layers": [{
            "mediaType": "application/wasm", "digest": digest(component), "size": component.len(),
        }],
    })
    .to_string()
}
