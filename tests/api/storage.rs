//! Settings of the section `storage`, and a database that becomes unavailable.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use keywright_harness::{Options, Server, Text};
use keywright_test_postgres::{PostgresServer, shared};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

#[test]
fn a_database_password_is_never_printed() {
    let url = "url = \"postgres://keywright@127.0.0.1:1/a?sslmode=disable\"";
    let options =
        Options::default().storage(&format!("{url}\npassword_environment = \"PASSWORD\""));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    fs::write(&file, "hunter2").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let options = options.environment("PGPASSFILE", file.to_str().unwrap());
    let message = Server::refusal(&options.environment("PASSWORD", "hunter2"));
    message.assert_contains("could not reach the database a on 127.0.0.1:1");
    message.assert_lacks("hunter2");
}

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

#[tokio::test]
async fn notices_of_postgresql_are_not_logged() {
    let Some(postgres) = shared() else {
        return;
    };
    let url = postgres.new_database();
    let storage = format!("url = \"{url}\"");
    let server = Server::start_with(&Options::default().storage(&storage)).await;
    let noisy = "create function noisy() returns trigger language plpgsql as $$
        begin raise notice 'a notice'; raise warning 'a warning'; return new; end $$;
        create trigger noisy before insert on credential for each row execute function noisy()";
    postgres.run_at(&url, noisy);
    let value = json!({"name": "/a", "type": "value", "value": "v"});
    server.put("/api/v1/data", value).await.expect(200);
    let log = server.whole_log().await;
    log.assert_lacks("a notice");
    log.assert_lacks("a warning");
}

#[tokio::test]
async fn a_start_does_not_wait_forever_for_a_locked_table() {
    let Some(postgres) = shared() else {
        return;
    };
    let url = postgres.new_database();
    let storage = format!("url = \"{url}\"");
    let server = Server::start_with(&Options::default().storage(&storage)).await;
    server.stop().await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let lock = "begin; lock table _sqlx_migrations in access exclusive mode";
    connection.execute(lock).await.unwrap();
    let storage = format!("{storage}\nwait_seconds_max = 1");
    let refusal = Server::refusal(&Options::default().storage(&storage));
    refusal.assert_contains("it did not respond in time (storage.wait_seconds_max)");
    connection.close().await.unwrap();
}
