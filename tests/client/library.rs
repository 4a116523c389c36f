//! The client library, against a real server.

use std::fs;

use keywright_client::{Client, Find, GenerateCredential, Grant, Secret, SetCredential};
use keywright_harness::{Server, key_file};
use serde_json::json;

#[tokio::test]
async fn the_example_in_the_documentation_works() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start().await;
    let client = Client::builder(server.base_url())
        .trusting_only(fs::read(key_file("ca.pem"))?)
        .grant(Grant::ClientCredentials {
            client_id: "developer".to_owned(),
            client_secret: Secret::new("developer-secret".to_owned()),
        })
        .build()?;
    client
        .set_credential(&SetCredential::new(
            "/app/database",
            "json",
            &json!({"port": 5432}),
        )?)
        .await?;
    let credential = client.current_version("/app/database").await?;
    assert_eq!(credential.name, "/app/database");
    assert_eq!(credential.value.expose(), r#"{"port":5432}"#);

    let password = GenerateCredential::new("/app/password", "password");
    let generated = client.generate_credential(&password).await?;
    let regenerated = client.regenerate_credential("/app/password", None).await?;
    assert_ne!(generated.id, regenerated.id);
    assert_eq!(client.versions("/app/password", None).await?.len(), 2);
    assert_eq!(client.version_by_id(&generated.id).await?.id, generated.id);
    let below = Find {
        path: "/app".to_owned(),
        ..Find::default()
    };
    let found = client.find_credentials(&below).await?;
    assert_eq!(found.len(), 2);
    client.delete_credential("/app/password").await?;
    let absent = client.current_version("/app/password").await.unwrap_err();
    assert!(absent.is_not_found());
    assert!(!format!("{client:?} {credential:?}").contains("5432"));
    Ok(())
}
