//! Settings of the section `storage`, and a database that becomes unavailable.

use keywright_harness::{Options, Server};
use keywright_test_postgres::PostgresServer;
use serde_json::json;

// Invalid settings in the section `storage`, and their errors.

#[test]
fn an_invalid_storage_configuration_is_refused() {
    for (lines, reason) in [
        ("", "exactly one of storage.file (SQLite) and storage.url"),
        (
            "file = \"a.db\"\nurl = \"postgres://db/a\"",
            "exactly one of storage.file (SQLite) and storage.url",
        ),
        (
            "file = \"a.db\"\npassword_environment = \"A\"",
            "can only be set with url, not with file",
        ),
        (
            "url = \"postgres://db/a\"\npassword_environment = \"A\"\npassword_file = \"b\"",
            "only one of storage.password_file and storage.password_environment may be set",
        ),
        (
            "url = \"postgres://db/a\"\npassword_environment = \"KEYWRIGHT_TEST_ABSENT\"",
            "the environment variable KEYWRIGHT_TEST_ABSENT is not set",
        ),
        (
            "file = \"a.db\"\nreaders_max = 0",
            "storage.readers_max: must be from 1 to 1000, not 0",
        ),
        (
            "file = \"a.db\"\nreaders_max = 1001",
            "must be from 1 to 1000, not 1001",
        ),
        (
            "url = \"postgres://db/a\"\nwriters_max = 0",
            "storage.writers_max: must be from 1 to 1000, not 0",
        ),
        (
            "url = \"postgres://db/a\"\nwriters_max = 1001",
            "must be from 1 to 1000, not 1001",
        ),
        (
            "file = \"a.db\"\nwait_seconds_max = 0",
            "storage.wait_seconds_max: must be from 1 to 3600, not 0",
        ),
        (
            "file = \"a.db\"\nwait_seconds_max = 3601",
            "must be from 1 to 3600, not 3601",
        ),
        (
            "url = \"mysql://db\"",
            "the database's URL is malformed: it must start with postgres://",
        ),
    ] {
        let message = Server::refusal(&Options::default().storage(lines));
        assert!(message.contains(reason), "{lines}\n{message}");
    }
}

#[test]
fn a_database_password_is_never_printed() {
    for (lines, reason) in [
        (
            "url = \"postgres://keywright:hunter2@127.0.0.1:1/a\"",
            "the database's URL must not contain a password",
        ),
        (
            "url = \"postgres://127.0.0.1:1/a?sslmode=disable&password=hunter2\"",
            "the database's URL must not contain a password",
        ),
        (
            "url = \"postgres://keywright@127.0.0.1:1/a?sslmode=disable\"\npassword_environment = \"TEST_PASSWORD\"",
            "the database a on 127.0.0.1:1 can't be reached",
        ),
    ] {
        let options = Options::default().storage(lines);
        let message = Server::refusal(&options.environment("TEST_PASSWORD", "hunter2"));
        assert!(message.contains(reason), "{lines}\n{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

// A database that becomes unavailable and returns while the server runs.

#[tokio::test]
async fn requests_are_503_while_the_database_is_unavailable() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let storage = format!("url = \"{url}\"");
    let server = Server::start_with(&Options::default().storage(&storage)).await;
    let value = |name: &str| json!({"name": name, "type": "value", "value": "v"});
    let response = server.put("/api/v1/data", value("/before")).await;
    let set = response.expect(200);
    postgres.stop();
    for _ in 0..6 {
        let read = server.get("/api/v1/data?name=/before").await.expect(503);
        assert!(!read.body.contains("postgres"), "{}", read.body);
        let response = server.put("/api/v1/data", value("/during")).await;
        response.expect(503);
        server.get("/health").await.expect(503);
    }
    postgres.start_again();
    let response = server.get("/api/v1/data?name=/before&current=true").await;
    let read = response.expect(200);
    assert_eq!(read.json()["data"][0]["id"], set.json()["id"]);
    let response = server.put("/api/v1/data", value("/after")).await;
    response.expect(200);
    server.get("/api/v1/data?name=/during").await.expect(404);
}
