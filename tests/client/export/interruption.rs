//! Interrupted exports.

use std::fs;

use keywright_harness::{ended, signal};

use crate::{
    interruption::{SIGNALS, read_of, wait_until_stuck},
    stub::{Asked, Held, Reply, Stub, hold, listing, name_in, password_for},
};

#[test]
fn an_interrupted_export_to_a_pipe_is_invalid() {
    for (name, format) in SIGNALS.into_iter().zip(["yaml", "json", "yaml"]) {
        let (held, stub) = held_at("/c");
        let shell = stub.shell();
        let arguments = ["export", "--format", format, "--parallel", "1"];
        let mut child = shell.start(&arguments);
        held.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        let exported = read_of(child.stdout.take());
        assert!(exported.contains("/b"), "{exported}");
        assert!(!exported.contains("/c"), "{exported}");
        let import = shell.run_with(&["import", "-", "--dry-run"], &exported);
        assert!(import.expect(1).errors.contains("line "), "{exported}");
    }
}

#[test]
fn an_interrupted_export_leaves_files_unchanged() {
    for name in SIGNALS {
        let (held, stub) = held_at("/c");
        let shell = stub.shell();
        fs::write(shell.file("export.yml"), "before").unwrap();
        let before = files(shell.folder());
        let mut child = shell.start(&["export", "--file", "export.yml", "--force"]);
        held.wait();
        assert_eq!(files(shell.folder()).len(), before.len() + 1);
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        assert_eq!(files(shell.folder()), before);
        let there = fs::read_to_string(shell.file("export.yml")).unwrap();
        assert_eq!(there, "before");
    }
}

#[test]
fn an_export_blocked_by_its_reader_can_be_interrupted() {
    let value = "v".repeat(256 * 1024);
    let stub = Stub::start(move |asked, _, _| match asked.line.as_str() {
        LISTING => Reply::new(200, &listing(["/a", "/b", "/c"])),
        _ => Reply::new(200, &password_for(asked, &value)),
    });
    for name in SIGNALS {
        let mut child = stub.shell().start(&["export"]);
        wait_until_stuck(&mut child);
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
    }
}

/// A server with three credentials that blocks the request for one.
fn held_at(name: &'static str) -> (Held, Stub) {
    let (held, holder) = hold();
    let stub = Stub::start(move |asked: &Asked, _, _| {
        if asked.line == LISTING {
            return Reply::new(200, &listing(["/a", "/b", "/c"]));
        }
        if name_in(asked) == name {
            holder.hold();
        }
        Reply::new(200, &password_for(asked, "secret"))
    });
    (held, stub)
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const LISTING: &str = "GET /api/v1/data?path=";
