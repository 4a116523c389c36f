//! Export files appear once complete, and only their owner can read them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use keywright_harness::{Server, Shell};
use serde_json::json;

#[tokio::test]
async fn export_files_have_mode_0600_without_temporary_files() {
    let server = server().await;
    let shell = Shell::of(&server);
    let before = names(shell.folder());
    let run = shell.run(&["export", "--file", "export.yml"]).expect(0);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&run.output).unwrap()["exported"],
        json!(3)
    );
    let mode = fs::metadata(shell.file("export.yml"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mut expected = before;
    expected.push("export.yml".to_owned());
    expected.sort();
    assert_eq!(names(shell.folder()), expected);
}

#[tokio::test]
async fn an_existing_file_is_overwritten_only_with_force() {
    let server = server().await;
    let shell = Shell::of(&server);
    fs::write(shell.file("export.yml"), "before").unwrap();
    let refused = shell.run(&["export", "--file", "export.yml"]).expect(1);
    assert!(
        refused.errors.contains("export.yml already exists"),
        "{refused:?}"
    );
    assert_eq!(
        fs::read_to_string(shell.file("export.yml")).unwrap(),
        "before"
    );
    shell
        .run(&["export", "--file", "export.yml", "--force"])
        .expect(0);
    let replaced = fs::read_to_string(shell.file("export.yml")).unwrap();
    assert!(replaced.starts_with("credentials:\n"));
    for wrong in [".", "no/such/folder/export.yml"] {
        shell.run(&["export", "--file", wrong, "--force"]).expect(1);
    }
}

#[tokio::test]
async fn a_pipe_is_written_to_directly() {
    let server = server().await;
    let shell = Shell::of(&server);
    let line = "mkfifo pipe; cat pipe >seen & keywright export --file pipe >summary; wait; head --lines 1 seen; stat --format %F pipe";
    let run = shell.bash(line).expect(0);
    assert_eq!(run.output, "credentials:\nfifo\n");
}

#[tokio::test]
async fn a_terminal_shows_a_progress_bar_and_a_summary() {
    let server = server().await;
    let shell = Shell::of(&server);
    let (status, screen) = shell.on_terminal(&["export", "--file", "export.yml"]).end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("3 of 3"), "{screen}");
    assert!(screen.contains("exported"), "{screen}");
    assert!(!screen.contains("secret"), "{screen}");
}

async fn server() -> Server {
    let server = Server::start().await;
    for name in ["/a", "/b", "/c"] {
        let set = server.set(name, "password", json!("secret"));
        set.await.expect(200);
    }
    server
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
