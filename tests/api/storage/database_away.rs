//! A database that becomes unavailable and returns while the server runs.

use keywright_harness::{Options, Server};
use keywright_test_postgres::PostgresServer;
use serde_json::json;

#[tokio::test]
async fn requests_are_503_while_the_database_is_unavailable() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let storage = format!("url = \"{url}\"");
    let server = Server::start_with(&Options::default().storage(&storage)).await;
    let value = |name: &str| json!({"name": name, "type": "value", "value": "v"});
    let set = server
        .put("/api/v1/data", value("/before"))
        .await
        .expect(200);
    postgres.stop();
    for _ in 0..6 {
        let read = server.get("/api/v1/data?name=/before").await.expect(503);
        assert!(!read.body.contains("postgres"), "{}", read.body);
        server
            .put("/api/v1/data", value("/during"))
            .await
            .expect(503);
        server.get("/health").await.expect(503);
    }
    postgres.start_again();
    let read = server
        .get("/api/v1/data?name=/before&current=true")
        .await
        .expect(200);
    assert_eq!(read.json()["data"][0]["id"], set.json()["id"]);
    server
        .put("/api/v1/data", value("/after"))
        .await
        .expect(200);
    server.get("/api/v1/data?name=/during").await.expect(404);
}
