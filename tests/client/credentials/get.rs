//! `keywright get`.

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::shown;

#[tokio::test]
async fn a_pipe_gets_only_the_active_version_as_json() {
    let server = Server::start().await;
    server.set("/a", "password", json!("old")).await.expect(200);
    let set = server.set("/a", "password", json!("new")).await.expect(200);
    let run = Shell::of(&server).run(&["get", "/a"]);
    assert_eq!(run.errors, "");
    assert_eq!(shown(run), set.json());
}

#[tokio::test]
async fn certificates_are_shown_with_all_fields_of_the_api() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "root", "is_ca": true});
    let made = server.generate("/ca", "certificate", parameters).await;
    made.expect(200);
    let path = "/api/v1/data?name=/ca&current=true";
    let expected = server.get(path).await.expect(200).json()["data"][0].clone();
    let shell = Shell::of(&server);
    assert_eq!(shown(shell.run(&["get", "/ca"])), expected);
    let table = shell.run(&["get", "/ca", "-o", "table"]).expect(0).output;
    for words in [
        "certificate authority  yes",
        "-----BEGIN CERTIFICATE-----",
        "expires",
    ] {
        assert!(table.contains(words), "{table}");
    }
}

#[tokio::test]
async fn versions_are_read_by_id_by_count_or_all() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for value in ["one", "two", "three"] {
        let set = server.set("/a", "value", json!(value)).await.expect(200);
        ids.push(set.json()["id"].as_str().unwrap().to_owned());
    }
    let shell = Shell::of(&server);
    assert_eq!(shown(shell.run(&["get", "--id", &ids[0]]))["value"], "one");
    let two = shown(shell.run(&["get", "/a", "--versions", "2"]));
    let versions = two["data"].as_array().unwrap();
    let values: Vec<_> = versions.iter().map(|version| &version["value"]).collect();
    assert_eq!(values, ["three", "two"]);
    shell.run(&["get", "/a", "--versions", "0"]).expect(2);
    shell.run(&["get", "/a", "--versions", "many"]).expect(2);
    for arguments in [
        &["get", "/a", "--versions"][..],
        &["get", "--versions", "all", "/a"],
        &["get", "--versions", "9", "/a"],
    ] {
        let all = shown(shell.run(arguments));
        let all = all["data"].as_array().unwrap().iter().rev();
        let all: Vec<_> = all.map(|version| version["id"].clone()).collect();
        assert_eq!(all, ids);
    }
    shell.run(&["get", "/a", "--id", &ids[0]]).expect(2);
    shell.run(&["get", "--id", "../certificates"]).expect(4);
}

#[tokio::test]
async fn a_pipe_gets_the_raw_value_or_one_field() {
    let server = Server::start().await;
    let user = json!({"username": "admin", "password": "s3cret"});
    server.set("/user", "user", user).await.expect(200);
    server
        .set("/text", "value", json!("a\nb\n"))
        .await
        .expect(200);
    let object = json!({"port": 5432, "tags": ["a"]});
    server.set("/object", "json", object).await.expect(200);
    let shell = Shell::of(&server);
    for (arguments, expected) in [
        (&["get", "/user", "--member", "password"][..], "s3cret"),
        (&["get", "/text", "--raw"], "a\nb\n"),
        (
            &["get", "/object", "--raw"],
            "{\"port\":5432,\"tags\":[\"a\"]}",
        ),
        (&["get", "/object", "-m", "port"], "5432"),
        (&["get", "/object", "-m", "tags"], "[\"a\"]"),
    ] {
        assert_eq!(
            shell.run(arguments).expect(0).output,
            expected,
            "{arguments:?}"
        );
    }
    let terminal = shell.on_terminal(&["get", "/user", "--member", "password"]);
    assert_eq!(terminal.end(), (Some(0), "s3cret\n".to_owned()));
}

#[tokio::test]
async fn a_file_contains_only_the_value_and_has_mode_0600() {
    let server = Server::start().await;
    server
        .set("/a", "password", json!("s3cret"))
        .await
        .expect(200);
    let shell = Shell::of(&server);
    let file = shell.file("password");
    for before in [None, Some("longer than the new contents")] {
        if let Some(before) = before {
            fs::write(&file, before).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let run = shell.run(&["get", "/a", "--file", "password"]).expect(0);
        assert_eq!((run.output.as_str(), run.errors.as_str()), ("", ""));
        assert_eq!(fs::read_to_string(&file).unwrap(), "s3cret");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let run = shell
        .run(&["get", "/a", "--file", "absent/password"])
        .expect(1);
    assert!(run.errors.contains("absent/password"), "{run:?}");
}

#[tokio::test]
async fn pipes_and_devices_are_written_to_directly() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v1 ")).await.expect(200);
    let shell = Shell::of(&server);
    let run = shell.run(&["get", "/a", "--file", "/dev/stdout"]);
    assert_eq!(run.expect(0).output, "v1 ");
    for (line, expected) in [
        (
            "mkfifo pipe; cat pipe >seen & keywright get /a --file pipe; wait; cat seen; stat --format %F pipe",
            "v1 fifo\n",
        ),
        ("keywright get /a --file /dev/fd/3 3>&1 | cat", "v1 "),
        (
            "printf 'before ' >log; keywright get /a --file /dev/stdout >>log; cat log",
            "before v1 ",
        ),
    ] {
        assert_eq!(shell.bash(line).expect(0).output, expected, "{line}");
    }
}

#[tokio::test]
async fn the_target_of_a_link_is_replaced_and_the_link_stays() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let shell = Shell::of(&server);
    let line = "mkdir far; touch far/value; chmod 644 far/value; ln -s far/value link; keywright get /a --file link; \
                cat far/value; stat --format ' %a' far/value; stat --format %F link; ls -A far";
    let seen = shell.bash(line).expect(0).output;
    assert_eq!(seen, "v 600\nsymbolic link\nvalue\n");
}
