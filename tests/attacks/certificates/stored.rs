//! Stored certificates that would be rejected today.

use keywright_harness::Server;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use serde_json::json;

use super::{issued::assert_alive, mutants};

#[tokio::test]
async fn a_malformed_stored_ca_is_reported_and_does_not_sign() {
    let server = Server::start().await;
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::default();
    parameters
        .distinguished_name
        .push(DnType::CommonName, "authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&key).unwrap();
    let key = key.serialize_pem();
    for (number, (malformed, part)) in [
        ("byte that is not UTF-8: subject [0, 0, 1]", "subject"),
        ("extra element: subject [0]", "subject"),
        ("extra element: extensions [0, 0]", "list of extensions"),
    ]
    .into_iter()
    .enumerate()
    {
        let mutants = mutants::malformed(authority.der(), &key);
        let mutant = mutants
            .into_iter()
            .find(|mutant| mutant.name == malformed)
            .unwrap();
        let value = json!({"certificate": mutant.certificate, "private_key": key});
        let name = format!("/{number}");
        let refused = server
            .set(&name, "certificate", value.clone())
            .await
            .expect(400);
        assert!(
            refused.error().contains(&format!("malformed {part}")),
            "{refused:?}"
        );
        // Stored by a release with fewer checks.
        server.set(&name, "json", value).await.expect(200);
        server
            .run_sql("update credential set credential_type = 'certificate' where credential_type = 'json'")
            .await;
        let parameters = json!({"ca": name, "common_name": "leaf"});
        let refused = server
            .generate("/leaf", "certificate", parameters)
            .await
            .expect(400);
        let words =
            format!("the certificate authority can't sign: its certificate has a malformed {part}");
        assert!(refused.error().starts_with(&words), "{refused:?}");
    }
    let checked = server.run_command(&["check"]);
    for (number, part) in ["subject", "subject", "list of extensions"]
        .iter()
        .enumerate()
    {
        let words = format!("certificate has a malformed {part}");
        let is_found = checked
            .output
            .lines()
            .any(|line| line.contains(&format!("/{number}")) && line.contains(&words));
        assert!(is_found, "{checked:?}");
    }
    assert_alive(&server).await;
}
