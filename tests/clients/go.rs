//! The CredHub library for Go (`code.cloudfoundry.org/credhub-cli/credhub`).

use std::process::Command;

use keywright_harness::{Application, client_by_toolchain};

use crate::{Authentication, assert_calls_every_operation};

#[tokio::test]
async fn every_operation_with_client_credentials() {
    assert_works(&Authentication::by_secret()).await;
}

#[tokio::test]
async fn every_operation_with_mutual_tls() {
    let application = Application::issued();
    assert_works(&Authentication::by_certificate(&application)).await;
}

async fn assert_works(authentication: &Authentication) {
    if let Some(client) = client_by_toolchain("go") {
        assert_calls_every_operation(Command::new(client), authentication).await;
    }
}
