//! The CredHub libraries for Go (`code.cloudfoundry.org/credhub-cli/credhub`) and Spring
//! (`org.springframework.credhub:spring-credhub-core`), and the manifests for the External Secrets Operator in
//! `examples/kubernetes`, read by the operator's own packages.

use std::{path::Path, process::Command};

use keywright_harness::{
    Application, Options, Server, Text, client_by_toolchain, key_file, workspace,
};
use serde_json::{Value, json};

use crate::{Authentication, assert_calls_every_operation, run};

#[tokio::test]
async fn every_go_operation_succeeds_with_client_credentials() {
    assert_go_works(&Authentication::by_secret()).await;
}

#[tokio::test]
async fn every_go_operation_succeeds_with_mutual_tls() {
    let application = Application::issued();
    assert_go_works(&Authentication::by_certificate(&application)).await;
}

async fn assert_go_works(authentication: &Authentication) {
    if let Some(client) = client_by_toolchain("go") {
        assert_calls_every_operation(Command::new(client), authentication).await;
    }
}

#[tokio::test]
async fn blocking_spring_operations_succeed_with_client_credentials() {
    assert_spring_works("blocking", &Authentication::by_secret()).await;
}

#[tokio::test]
async fn blocking_spring_operations_succeed_with_mutual_tls() {
    let application = Application::issued();
    assert_spring_works("blocking", &Authentication::by_certificate(&application)).await;
}

#[tokio::test]
async fn reactive_spring_operations_succeed_with_client_credentials() {
    assert_spring_works("reactive", &Authentication::by_secret()).await;
}

#[tokio::test]
async fn reactive_spring_operations_succeed_with_mutual_tls() {
    let application = Application::issued();
    assert_spring_works("reactive", &Authentication::by_certificate(&application)).await;
}

async fn assert_spring_works(template: &str, authentication: &Authentication) {
    let Some(folder) = client_by_toolchain("java") else {
        return;
    };
    let mut java = Command::new("java");
    let (classes, libraries) = (folder.join("classes"), folder.join("libraries/*"));
    java.arg("-cp")
        .arg(format!("{}:{}", classes.display(), libraries.display()))
        // Optimizing takes longer than such a short run.
        .arg("-XX:TieredStopAtLevel=1")
        .args(["spring.Main", template]);
    assert_calls_every_operation(java, authentication).await;
}

#[tokio::test]
async fn kubernetes_secrets_contain_the_values_of_credentials() {
    let Some(client) = client_by_toolchain("kubernetes") else {
        return;
    };
    let server = start().await;
    let user = json!({"username": "shop", "password": "secret"});
    let user = server.set("/shop/database/user", "user", user).await;
    let root = server.set("/shop/database/root-password", "password", json!("root"));
    root.await.expect(200);
    let parameters = json!({"common_name": "web", "self_sign": true, "key_type": "ecdsa-p256"});
    let web = server.generate("/shop/web", "certificate", parameters);
    let web = web.await.expect(200).json();

    let secrets: Value = serde_json::from_str(&run(&mut operator(&client, &server))).unwrap();
    let database = json!({
        "root-password": "root",
        "username": "shop",
        "password": "secret",
        "password_hash": user.expect(200).json()["value"]["password_hash"],
    });
    let tls = json!({
        "ca.crt": web["value"]["ca"],
        "tls.crt": web["value"]["certificate"],
        "tls.key": web["value"]["private_key"],
    });
    let expected = |secret_type: &str, data| json!({"type": secret_type, "data": data});
    assert_eq!(secrets["shop/database"], expected("Opaque", database));
    assert_eq!(secrets["shop/web-tls"], expected("kubernetes.io/tls", tls));
    assert_eq!(secrets["warehouse/database"], secrets["shop/database"]);
}

#[tokio::test]
async fn a_missing_credential_in_a_manifest_is_reported() {
    let Some(client) = client_by_toolchain("kubernetes") else {
        return;
    };
    let server = start().await;
    let run = operator(&client, &server).output().unwrap();
    assert!(!run.status.success());
    let errors = String::from_utf8_lossy(&run.stderr);
    errors.assert_contains("Secret does not exist");
}

/// Starts a server with the client of the manifests, which may read below `/shop`.
async fn start() -> Server {
    let options = Options::default().extra(&format!(
        "[[development_identity_provider.clients]]\nid = \"shop\"\nsecret = \"{SECRET}\"\n\
         [[authorization.permissions]]\npath = \"/shop/*\"\nactors = [\"uaa-client:shop\"]\n\
         operations = [\"read\"]\n"
    ));
    Server::start_with(&options).await
}

/// Returns a command that creates the Secrets of the manifests.
fn operator(client: &Path, server: &Server) -> Command {
    let mut operator = Command::new(client);
    operator
        .arg(workspace().join("examples/kubernetes"))
        .arg(server.base_url())
        .arg(key_file("ca.pem"))
        .arg(SECRET);
    operator
}

/// Has characters that must be escaped in a form.
const SECRET: &str = "a secret & more+%";
