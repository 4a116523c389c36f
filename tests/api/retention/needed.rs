//! Versions that retention keeps regardless of policies because other responses depend on them.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{after_a_run, ids, options};
use crate::{
    certificates::Certificate,
    given::{self, generate_certificate},
};

const ONE_OF_EACH: (&str, &str) = ("/*", "versions_max = 1");

#[tokio::test]
async fn active_and_transitional_versions_are_kept() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    let root = Certificate::generate_root(&server, "/root").await;
    for _ in 0..2 {
        root.regenerate(json!({})).await.expect(200);
    }
    let transitional = json!({"set_as_transitional": true});
    root.regenerate(transitional).await.expect(200);
    let current = root.current().await;
    assert_eq!(current.len(), 2);
    after_a_run(&[&server]).await;
    assert_eq!(root.current().await, current);
    assert_eq!(root.versions().await.len(), 2);
    // The flag moves to the older version and is then cleared, so that the version is no longer needed.
    let [in_use, newest] = [&current[0], &current[1]].map(given::id);
    root.move_transitional(json!(in_use)).await.expect(200);
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/root").await, [newest.clone(), in_use]);
    root.move_transitional(Value::Null).await.expect(200);
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/root").await, [newest]);
}

#[tokio::test]
async fn a_ca_version_is_kept_while_a_certificate_it_signed_exists() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    let soon = json!({"is_ca": true, "duration": 20});
    let signed_with = given::id(&generate_certificate(&server, "/root", soon).await);
    generate_certificate(&server, "/leaf", json!({"ca": "/root", "duration": 300})).await;
    let root = Certificate::named(&server, "/root").await;
    for _ in 0..2 {
        root.regenerate(json!({"duration": 900})).await.expect(200);
    }
    let newest = given::id(&given::newest(&server, "/root").await);
    let before = answers(&server).await;
    after_a_run(&[&server]).await;
    assert_eq!(
        ids(&server, "/root").await,
        [newest.clone(), signed_with.clone()]
    );
    let after = answers(&server).await;
    assert_eq!(after, before);
    let link = &after[0]["credentials"][0]["expiring_link"];
    assert_eq!(link["version_id"], Value::String(signed_with));
    let leaf = Certificate::named(&server, "/leaf").await;
    leaf.regenerate(json!({})).await.expect(200);
    // The leaf's old version is deleted first, then its signer.
    after_a_run(&[&server]).await;
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/leaf").await.len(), 1);
    assert_eq!(ids(&server, "/root").await, [newest]);
}

#[tokio::test]
async fn certificates_remain_linked_to_their_signing_ca() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    for root in ["/one", "/two"] {
        generate_certificate(&server, root, json!({"is_ca": true})).await;
    }
    let mut all = Vec::new();
    for ca in ["/one", "/one", "/two", "/two"] {
        let parameters = json!({"common_name": "leaf", "ca": ca, "key_type": given::QUICK_KEY});
        let generated = server.generate_in_mode("overwrite", "/leaf", "certificate", parameters);
        all.push(given::id(&generated.await.expect(200).json()));
    }
    let before = answers(&server).await;
    after_a_run(&[&server]).await;
    assert_eq!(
        ids(&server, "/leaf").await,
        [all[3].clone(), all[1].clone()]
    );
    assert_eq!(answers(&server).await, before);
    let regenerated = server.bulk_regenerate("/one").await.expect(200).json();
    assert_eq!(regenerated["regenerated_credentials"], json!(["/leaf"]));
}

/// The responses about all certificates, without their lists of versions.
async fn answers(server: &Server) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in [
        "/api/v1/data?name-like=/&expires-within-days=5000&effective=true",
        "/api/v1/data?name-like=/&expires-within-days=5000",
        "/api/v1/data?path=/",
        "/api/v1/certificates",
        "/api/v1/certificates?name=/one",
        "/api/v1/certificates?name=/two",
        "/api/v1/certificates?name=/root",
        "/api/v1/data?name=/leaf&current=true",
        "/api/v1/data?name=/root&current=true",
    ] {
        let mut answer = server.get(path).await.json();
        if let Some(certificates) = answer["certificates"].as_array_mut() {
            for certificate in certificates {
                certificate["versions"].take();
            }
        }
        answers.push(answer);
    }
    answers
}
