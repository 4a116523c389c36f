//! Spring CredHub (`org.springframework.credhub:spring-credhub-core`).

use std::process::Command;

use keywright_harness::{Application, client_by_toolchain};

use crate::{Authentication, assert_calls_every_operation};

#[tokio::test]
async fn every_blocking_operation_with_client_credentials() {
    assert_works("blocking", &Authentication::by_secret()).await;
}

#[tokio::test]
async fn every_blocking_operation_with_mutual_tls() {
    let application = Application::issued();
    assert_works("blocking", &Authentication::by_certificate(&application)).await;
}

#[tokio::test]
async fn every_reactive_operation_with_client_credentials() {
    assert_works("reactive", &Authentication::by_secret()).await;
}

#[tokio::test]
async fn every_reactive_operation_with_mutual_tls() {
    let application = Application::issued();
    assert_works("reactive", &Authentication::by_certificate(&application)).await;
}

async fn assert_works(template: &str, authentication: &Authentication) {
    let Some(folder) = client_by_toolchain("java") else {
        return;
    };
    let mut java = Command::new("java");
    let (classes, libraries) = (folder.join("classes"), folder.join("libraries/*"));
    java.arg("-cp")
        .arg(format!("{}:{}", classes.display(), libraries.display()))
        // Thorough compilation would not pay in a run of seconds.
        .arg("-XX:TieredStopAtLevel=1")
        .args(["spring.Main", template]);
    assert_calls_every_operation(java, authentication).await;
}
