//! Metrics contain no names of actors and credentials.

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

use super::Canaries;

#[tokio::test]
async fn metrics_contain_no_secret_name_or_actor() {
    let server = Server::start_with(&Options::default().watched()).await;
    let mut canaries = Canaries::default();
    let name = format!("/{}", canaries.plant("a credential's name"));
    let value = canaries.plant("a value");
    server.set(&name, "value", json!(value)).await.expect(200);
    let json_value = json!({canaries.plant("a json's key"): canaries.plant("a json's value")});
    server
        .set(&format!("{name}/json"), "json", json_value)
        .await
        .expect(200);
    let certificate = json!({
        "common_name": canaries.plant("a common name"),
        "alternative_names": [format!("{}.example", canaries.plant("an alternative name"))],
        "self_sign": true,
    });
    let certificate = server
        .generate(&format!("{name}/c"), "certificate", certificate)
        .await
        .expect(200)
        .json();
    canaries.watch_made("a certificate", &certificate["value"]);
    let id = certificate["id"].as_str().unwrap_or_default().to_owned();
    canaries.watch("a version's id", &id);
    server.get(&format!("/api/v1/data/{id}")).await.expect(200);
    server
        .get(&format!("/api/v1/data?name={name}"))
        .await
        .expect(200);
    let password = server
        .generate(&format!("{name}/p"), "password", json!({"length": 40}))
        .await
        .expect(200)
        .json();
    canaries.watch_made("a password", &password["value"]);
    for source in ["a path", "a query", "a refused token", "a method"] {
        let text = canaries.plant(source);
        let method = Method::from_bytes(text.to_uppercase().as_bytes()).unwrap_or_default();
        canaries.watch(source, method.as_str());
        let paths = [format!("/{text}"), format!("/api/v1/data?{text}={text}")];
        for path in paths {
            server.send(server.authorized(method.clone(), &path)).await;
            server.get(&path).await;
            let request = server.request(Method::GET, &path).bearer_auth(&text);
            server.send(request).await.expect(401);
        }
    }
    let body = json!({"name": name, "type": canaries.plant("an unknown type"), "value": "v"});
    server.put("/api/v1/data", body).await.expect(422);
    canaries.watch("the token", server.token());
    canaries.watch("the actor", "developer");

    let scrape = server.scrape().await;
    // Without these the search would be meaningless.
    for marker in [
        "unmatched",
        "keywright_certificates",
        r#"plugin="password""#,
    ] {
        assert!(scrape.text().contains(marker), "{marker}");
    }
    canaries.assert_absent("the measurements", scrape.text());
}
