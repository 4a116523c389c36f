//! The certificates, and the rotation of a CA.

use serde_json::json;

use super::Chromium;
use crate::{given, server};

#[tokio::test]
async fn a_ca_is_rotated_from_the_first_to_the_last_step() {
    let server = server().await;
    given::credentials(&server).await;
    let root = json!({"common_name": "Shop root", "is_ca": true});
    server
        .generate("/shop/root", "certificate", root)
        .await
        .expect(200);
    let leaf = json!({"common_name": "shop.example", "ca": "/shop/root"});
    server
        .generate("/shop/web", "certificate", leaf)
        .await
        .expect(200);
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    for (path, page) in [
        ("/console/certificates", "certificates"),
        ("/console/certificates?name=/pki/root", "certificates-of-ca"),
        ("/console/certificate?name=/pki/root", "certificate-details"),
        ("/console/expiring?within-days=90", "expiring"),
    ] {
        chromium.open(path).await;
        chromium.check(page).await;
    }
    let rotation = "/console/certificate/rotation";
    chromium.open(&format!("{rotation}?name=/shop/root")).await;
    for step in 1..=4 {
        chromium.find_text(&format!("Take step {step}")).await;
        chromium.check(&format!("rotation-{step}")).await;
        chromium
            .submit(&format!("form[action='{rotation}'] button"))
            .await;
        chromium
            .find_text(&format!("Step {step} is complete."))
            .await;
    }
    chromium.check("rotation-complete").await;
    assert_eq!(server.versions("/shop/root").await.len(), 2);
}
