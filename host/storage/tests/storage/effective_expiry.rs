//! Certificates that expire with their chains.

use std::ops::ControlFlow;

use keywright_core::{
    credential::{CHAIN_DEPTH_MAX, CredentialName, EffectiveExpiry, FindNames, IssuerVersion},
    ports::{CredentialRepository, NewVersion},
};

use crate::support::{Fixture, at, facts, version};

#[tokio::test]
async fn a_chain_is_walked_up_to_the_limit() {
    let fixture = Fixture::new().await;
    let mut issuer = None;
    // The first is the root, the only one that expires soon. The last is one link past the limit.
    for number in 0..=CHAIN_DEPTH_MAX + 1 {
        let name = format!("/c/{number:03}");
        // The chain of another type counts, too.
        let credential_type = match number {
            CHAIN_DEPTH_MAX => "wireguard",
            _ => "certificate",
        };
        let new = version(&fixture, &name, credential_type, i64::from(number));
        let expires_at = if number == 0 { 100 } else { 9_000 };
        let id = fixture
            .write(NewVersion {
                certificate: Some(facts(expires_at)),
                signed_by: issuer.map(|_| CredentialName::parse("/c/000").unwrap()),
                issuer,
                ..new
            })
            .await;
        issuer = Some(IssuerVersion {
            version_id: Some(id),
            expires_at: at(expires_at),
        });
    }
    let mut found: Vec<EffectiveExpiry> = Vec::new();
    let mut keep = |expiry| {
        found.push(expiry);
        ControlFlow::Continue(())
    };
    fixture
        .credentials
        .effective_expiries(&FindNames::below("/"), at(100), &mut keep)
        .await
        .unwrap();
    let depths: Vec<u32> = found.iter().map(|expiry| expiry.link.depth).collect();
    assert_eq!(depths, (0..=CHAIN_DEPTH_MAX).collect::<Vec<_>>());
    let farthest = found.last().unwrap();
    assert_eq!(farthest.name.as_str(), format!("/c/{CHAIN_DEPTH_MAX:03}"));
    assert_eq!(farthest.link.name.as_ref().unwrap().as_str(), "/c/000");
}
