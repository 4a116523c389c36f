//! The commands `get`, `find` and `delete`. The commands that add versions are in `write.rs`.

mod write;

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{Options, Reply, ReusedServer, Server, Shell, Stub, Text};
use serde_json::json;

use crate::{
    fixtures::{gate, listing, name_in},
    json_of,
};

#[tokio::test]
async fn get_prints_the_active_version_its_raw_value_or_a_field() {
    let server = Server::reused().await;
    server.stored("/a", "password", json!("old")).await;
    let set = server.stored("/a", "password", json!("new")).await;
    let run = Shell::of(&server).run("get /a");
    assert_eq!(run.errors, "");
    assert_eq!(json_of(run), set);

    let user = json!({"username": "admin", "password": "s3cret"});
    server.stored("/user", "user", user).await;
    server.stored("/text", "value", json!("a\nb\n")).await;
    let object = json!({"port": 5432, "tags": ["a"]});
    server.stored("/object", "json", object).await;
    let shell = Shell::of(&server);
    for (arguments, expected) in [
        ("get /user --member password", "s3cret"),
        ("get /text --raw", "a\nb\n"),
        ("get /object --raw", "{\"port\":5432,\"tags\":[\"a\"]}"),
        ("get /object -m port", "5432"),
        ("get /object -m tags", "[\"a\"]"),
    ] {
        let run = shell.run(arguments).expect(0);
        assert_eq!(run.output, expected, "{arguments}");
    }
    let terminal = shell.on_terminal("get /user --member password");
    assert_eq!(terminal.end(), (Some(0), "s3cret\n".to_owned()));
}

#[tokio::test]
async fn get_prints_all_fields_of_a_certificate() {
    let server = Server::reused().await;
    server.generate_authority("/ca", None).await;
    let path = "/api/v1/data?name=/ca&current=true";
    let expected = server.get_json(path).await["data"][0].clone();
    let shell = Shell::of(&server);
    assert_eq!(json_of(shell.run("get /ca")), expected);
    let table = shell.run("get /ca -o table").expect(0).output;
    for words in [
        "certificate authority  yes",
        "-----BEGIN CERTIFICATE-----",
        "expires",
    ] {
        table.assert_contains(words);
    }
}

#[tokio::test]
async fn get_reads_a_version_by_id_or_several_versions() {
    let server = Server::reused().await;
    let mut ids = Vec::new();
    for value in ["one", "two", "three"] {
        let set = server.stored("/a", "value", json!(value)).await;
        ids.push(set["id"].as_str().unwrap().to_owned());
    }
    let shell = Shell::of(&server);
    let by_id = json_of(shell.run(&["get", "--id", &ids[0]]));
    assert_eq!(by_id["value"], "one");
    let two = json_of(shell.run("get /a --versions 2"));
    let versions = two["data"].as_array().unwrap();
    let values: Vec<_> = versions.iter().map(|version| &version["value"]).collect();
    assert_eq!(values, ["three", "two"]);
    shell.run("get /a --versions 0").expect(2);
    shell.run("get /a --versions many").expect(2);
    for arguments in [
        "get /a --versions",
        "get --versions all /a",
        "get --versions 9 /a",
    ] {
        let all = json_of(shell.run(arguments));
        let all = all["data"].as_array().unwrap().iter().rev();
        let all: Vec<_> = all.map(|version| version["id"].clone()).collect();
        assert_eq!(all, ids);
    }
    shell.run(&["get", "/a", "--id", &ids[0]]).expect(2);
    shell.run("get --id ../certificates").expect(4);
}

#[tokio::test]
async fn get_writes_only_the_value_to_a_file_pipe_or_link_target() {
    let server = Server::reused().await;
    server.stored("/a", "password", json!("s3cret")).await;
    let shell = Shell::of(&server);
    let file = shell.file("password");
    for before in [None, Some("longer than the new contents")] {
        if let Some(before) = before {
            fs::write(&file, before).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let run = shell.run("get /a --file password").expect(0);
        assert_eq!((run.output.as_str(), run.errors.as_str()), ("", ""));
        assert_eq!(fs::read_to_string(&file).unwrap(), "s3cret");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let run = shell.run("get /a --file absent/password").expect(1);
    run.errors.assert_contains("absent/password");

    server.stored("/piped", "value", json!("v1 ")).await;
    let shell = Shell::of(&server);
    let run = shell.run("get /piped --file /dev/stdout");
    assert_eq!(run.expect(0).output, "v1 ");
    for (line, expected) in [
        (
            "mkfifo pipe; cat pipe >seen & keywright get /piped --file pipe; wait; cat seen; stat --format %F pipe",
            "v1 fifo\n",
        ),
        ("keywright get /piped --file /dev/fd/3 3>&1 | cat", "v1 "),
        (
            "printf 'before ' >log; keywright get /piped --file /dev/stdout >>log; cat log",
            "before v1 ",
        ),
    ] {
        assert_eq!(shell.bash(line).expect(0).output, expected, "{line}");
    }

    server.stored("/linked", "value", json!("v")).await;
    let shell = Shell::of(&server);
    let line = "mkdir far; touch far/value; chmod 644 far/value; ln -s far/value link; keywright get /linked --file link; \
                cat far/value; stat --format ' %a' far/value; stat --format %F link; ls -A far";
    let seen = shell.bash(line).expect(0).output;
    assert_eq!(seen, "v 600\nsymbolic link\nvalue\n");
}

#[tokio::test]
async fn find_lists_credentials_below_a_path_by_name_or_all() {
    let server = Server::reused().await;
    for name in ["/a/one", "/a/two", "/b/ONE"] {
        server.stored(name, "value", json!("v")).await;
    }
    let shell = Shell::of(&server);
    for (arguments, expected) in [
        ("find --names", "/b/ONE\n/a/two\n/a/one\n"),
        ("find --names --path /a", "/a/two\n/a/one\n"),
        ("find --names --name-like one", "/b/ONE\n/a/one\n"),
        ("find --names --path /none", ""),
    ] {
        let run = shell.run(arguments).expect(0);
        assert_eq!(run.output, expected, "{arguments}");
    }
    let api = server.get_json("/api/v1/data?path=/a").await;
    assert_eq!(json_of(shell.run("find --path /a")), api);
    let (status, screen) = shell.on_terminal("find --path /b").end();
    assert_eq!(status, Some(0));
    screen.assert_contains("NAME");
    screen.assert_contains("/b/ONE  20");
    shell.run("find --path /a --name-like one").expect(2);
}

#[tokio::test]
async fn find_lists_certificates_that_expire_or_whose_ca_expires() {
    let server = Server::reused().await;
    let authority = json!({"is_ca": true, "duration": 30});
    server.issued("/ca", authority).await;
    let leaf = json!({"ca": "/ca", "duration": 365});
    server.issued("/leaf", leaf).await;
    let shell = Shell::of(&server);
    let soon = ["find", "--expires-within-days", "60"];
    let found = json_of(shell.run(&soon));
    assert_eq!(found["credentials"].as_array().unwrap().len(), 1);
    assert!(found["credentials"][0]["expiry_date"].is_string());
    let effective = [&soon[..], &["--effective"]].concat();
    let found = json_of(shell.run(&effective));
    let found = found["credentials"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    let mut links = found.iter().map(|found| &found["expiring_link"]["name"]);
    assert!(links.all(|name| name == "/ca"), "{found:?}");
    let table = [&effective[..], &["-o", "table"]].concat();
    let table = shell.run(&table).expect(0).output;
    table.assert_contains("BECAUSE OF");
    let none = shell.run("find --path /none --expires-within-days 1 -o table");
    none.expect(0).output.assert_contains("EXPIRES");
    shell.run("find --effective").expect(2);
}

#[tokio::test]
async fn find_and_get_show_the_lifetime_of_a_value() {
    let options = Options::default().plugin(
        "plain-current",
        "current-generator",
        &["random"],
        "settings = { expires_after = 200000, rotate_after = 100000 }",
    );
    let server = Server::start_with(&options).await;
    let made = server.generated("/a", "plain-current", json!({})).await;
    let dates = ["expiry_date", "rotation_date"].map(|date| made[date].as_str().unwrap());
    let shell = Shell::of(&server);
    let find = ["find", "--expires-within-days", "2"];
    let found = json_of(shell.run(&find));
    let found = &found["credentials"][0];
    let actual = ["expiry_date", "rotation_date"].map(|date| &found[date]);
    assert_eq!(actual, dates);
    let table = [&find[..], &["-o", "table"]].concat();
    let table = shell.run(&table).expect(0).output;
    let shown = shell.run("get /a -o table").expect(0).output;
    for (output, names) in [
        (table, ["EXPIRES", "ROTATE"]),
        (shown, ["expires", "rotate"]),
    ] {
        for expected in names.into_iter().chain(dates) {
            output.assert_contains(expected);
        }
    }
}

/// Starts a server with two credentials below `/a`, and one outside.
async fn server() -> ReusedServer {
    let server = Server::reused().await;
    for name in ["/a/one", "/a/two", "/ab"] {
        server.stored(name, "value", json!("v")).await;
    }
    server
}

fn names(shell: &Shell) -> String {
    shell.run("find --names").expect(0).output
}

#[tokio::test]
async fn a_single_credential_is_deleted_without_confirmation() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run("delete /a/one").expect(0);
    assert_eq!(run.output, "");
    assert_eq!(names(&shell), "/ab\n/a/two\n");
}

#[tokio::test]
async fn a_path_is_deleted_after_confirmation() {
    let server = server().await;
    let shell = Shell::of(&server);
    for response in ["n", "", "nonsense"] {
        let mut terminal = shell.on_terminal("delete --path /a");
        terminal
            .expect("/a/one")
            .expect("Delete 2 credentials below \"/a\"");
        terminal.expect("[y/N]: ").type_line(response);
        assert_eq!(terminal.end().0, Some(3), "{response}");
        assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    }
    let mut terminal = shell.on_terminal("delete --path /a");
    terminal.expect("[y/N]: ").type_line("y");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn without_a_terminal_a_path_is_deleted_only_with_yes() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run_with("delete --path /a", "y\n").expect(2);
    run.errors.assert_contains("--yes");
    assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    shell.run("delete --path /a --yes").expect(0);
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn deleting_continues_after_a_failure_and_reports_it() {
    let server = server().await;
    let app = server.as_client("app").await;
    server.grant("/*", app.actor(), &["read"]).await;
    server.grant("/a/two", app.actor(), &["delete"]).await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell.run("delete --path /a --yes").expect(3);
    run.errors.assert_contains("/a/one: ");
    run.errors
        .assert_contains("Deleted 1 credential, 1 failed.");
    assert_eq!(names(&shell), "/ab\n/a/one\n");
}

#[test]
fn an_interrupted_deletion_reports_its_counts() {
    let (gate, blocker) = gate();
    let stub = Stub::start(move |request, _, _| {
        if request.line.starts_with("GET") {
            return Reply::new(200, &listing(["/a/1", "/a/2", "/a/3"]));
        }
        if name_in(request) == "/a/2" {
            blocker.block();
        }
        Reply::new(204, "")
    });
    let shell = stub.shell();
    let mut terminal = shell.on_terminal("delete --path /a");
    terminal.expect("[y/N]: ").type_line("y");
    gate.wait();
    terminal.signal("INT");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(130), "{screen}");
    screen.assert_contains("Deleted 1 credential, 0 failed, 2 not attempted.");
}

#[test]
fn a_401_ends_the_deletion_and_its_counts_are_reported() {
    let stub = Stub::start(
        |request, _, _| match request.line.split_once('?').unwrap() {
            ("GET /api/v1/data", _) => Reply::new(200, &listing(["/a/1", "/a/2", "/a/3", "/a/4"])),
            _ if name_in(request) == "/a/1" => Reply::new(204, ""),
            _ => Reply::new(401, "{\"error\":\"invalid_token\"}"),
        },
    );
    let arguments = "delete --path /a --yes";
    let run = stub.shell().run(arguments).expect(5);
    run.errors
        .assert_contains("Deleted 1 credential, 1 failed, 2 not attempted.");
    assert_eq!(stub.lines().len(), 3);
}

#[test]
fn a_404_is_a_failure_only_if_the_name_is_still_listed() {
    for (listed_then, failed, status) in [(vec![], 0, 0), (vec!["/a/2"], 1, 3)] {
        let stub = Stub::start(move |request, before, _| {
            match (request.line.starts_with("GET"), before) {
                (true, 0) => Reply::new(200, &listing(["/a/1", "/a/2"])),
                (true, _) => Reply::new(200, &listing(listed_then.iter().copied())),
                _ => Reply::new(404, "{\"error\":\"the credential does not exist\"}"),
            }
        });
        let arguments = ["delete", "--path", "/a", "--yes"];
        let run = stub.shell().run(&arguments).expect(status);
        let deleted = 2 - failed;
        let counts = format!("Deleted 0 credentials, {failed} failed, {deleted} already deleted.");
        run.errors.assert_contains(&counts);
    }
    // A 404 without the API's body is not evidence of a deletion.
    let stub = Stub::start(|request, _, _| {
        if request.line.starts_with("GET") {
            return Reply::new(200, &listing(["/a/1"]));
        }
        Reply::new(404, "<html>")
    });
    let arguments = ["delete", "--path", "/a", "--yes"];
    let run = stub.shell().run(&arguments).expect(3);
    run.errors
        .assert_contains("Deleted 0 credentials, 1 failed.");
}

#[test]
fn three_consecutive_lost_connections_end_the_deletion() {
    for (lost, status, counts) in [
        (&[2][..], 3, "Deleted 5 credentials, 1 failed."),
        (&[1, 2, 4, 5], 3, "Deleted 2 credentials, 4 failed."),
        (
            &[2, 3, 4],
            6,
            "Deleted 1 credential, 3 failed, 2 not attempted.",
        ),
    ] {
        let stub = Stub::start(move |request, _, _| {
            if request.line.starts_with("GET") {
                return Reply::new(
                    200,
                    &listing(["/a/1", "/a/2", "/a/3", "/a/4", "/a/5", "/a/6"]),
                );
            }
            let name = name_in(request);
            if lost.iter().any(|lost| name == format!("/a/{lost}")) {
                return Reply::lost();
            }
            Reply::new(204, "")
        });
        let arguments = ["delete", "--path", "/a", "--yes"];
        let run = stub.shell().run(&arguments).expect(status);
        run.errors.assert_contains(counts);
    }
}
