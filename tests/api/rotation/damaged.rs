//! Versions that cannot be decrypted.

use keywright_harness::{Server, run_sql};

use super::{
    FAST, Keys, assert_values, counted, ended_line, seed, set, until_inactive, until_logged,
};
use crate::given;

/// Puts the ciphertext and the nonce of one version of each of these credentials into another row.
const COPY: &str = "update credential_version set
    nonce = (select nonce from credential_version order by sequence limit 1),
    ciphertext = (select ciphertext from credential_version order by sequence limit 1)
    where credential_sequence in (select sequence from credential where name in ('/damaged/1', '/damaged/2'))";

#[tokio::test]
async fn undecryptable_versions_are_logged_once_and_skipped() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let mut values = seed(&server, 30).await;
    let caller = server.as_client("developer").await;
    let mut damaged = Vec::new();
    for name in ["/damaged/1", "/damaged/2"] {
        damaged.push(given::id(&set(&caller, name, "v").await.expect(200).json()));
    }
    set(&caller, "/last", "v").await.expect(200);
    values.insert("/last".to_owned(), vec!["v".to_owned()]);
    let folder = server.stop().await;
    run_sql(folder.path(), COPY).await;

    let options = keys.options(&["b", "a"], "batch_versions = 4\ninterval_seconds = 1");
    let server = Server::start_in(folder, &options).await;
    assert_eq!(until_inactive(&server, |left| left == 2).await, [31, 2, 0]);
    until_logged(&server, "stopped rotating encryption keys").await;
    assert_values(&server, &values).await;
    for id in &damaged {
        let reported = "can't be rotated to the active encryption key";
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(reported));
        assert_eq!(lines.filter(|line| line.contains(id)).count(), 1, "{id}");
        server.get(&format!("/api/v1/data/{id}")).await.expect(500);
    }
    assert_eq!(counted(&server).await, (31.0, 2.0));
    let remaining = "keywright_key_rotation_versions_remaining";
    let scrape = server.scrape().await;
    assert_eq!(scrape.sum(remaining, &[]), Some(2.0));
    let ended = ended_line(&server.log());
    assert_eq!(ended["rotation.versions_failed"], 2);
    assert_eq!(ended["rotation.versions_remaining"], 2);

    // The command reports them by its exit status and by name.
    for arguments in [["keys", "rotate", "--quiet"], ["keys", "rotate", "--wait"]] {
        let said = server.run_command(&arguments).expect(3);
        assert!(
            damaged.iter().all(|id| said.errors.contains(id)),
            "{said:?}"
        );
    }

    // Without them, the rotation completes.
    for name in ["/damaged/1", "/damaged/2"] {
        let answer = server.delete(&format!("/api/v1/data?name={name}")).await;
        answer.expect(204);
    }
    assert_eq!(until_inactive(&server, |left| left == 0).await, [31, 0, 0]);
    server.run_command(&["keys", "rotate"]).expect(0);
}
