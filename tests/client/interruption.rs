//! Shutdown signals and lost connections, in particular during exports and imports.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{Read, Write},
    ops::RangeInclusive,
    process::Child,
    thread,
    time::Duration,
};

use keywright_harness::{ReceivedRequest, Reply, Stub, Text, ended, signal};
use rustix::io::ioctl_fionread;

use crate::fixtures::{
    self, Gate, VERSION, file_names, gate, listing, name_in, password_for, versions,
};

const SIGNALS: [&str; 3] = ["INT", "TERM", "HUP"];

#[test]
fn each_signal_interrupts_a_command_waiting_for_the_server() {
    for name in SIGNALS {
        let (gate, blocker) = gate();
        let stub = Stub::start(move |_, _, _| {
            blocker.block();
            Reply::new(200, &versions())
        });
        let mut child = stub.shell().start("get /a");
        gate.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        assert_eq!(read_of(child.stderr.take()), "keywright: interrupted\n");
        assert_eq!(read_of(child.stdout.take()), "");
    }
}

#[test]
fn a_command_blocked_by_its_output_pipe_can_be_interrupted() {
    let names: Vec<_> = (0..5_000)
        .map(|index| format!("/some/{index:0>20}"))
        .collect();
    let listing = listing(names.iter().map(String::as_str));
    let stub = Stub::start(move |_, _, _| Reply::new(200, &listing));
    let mut child = stub.shell().start("find --names");
    wait_until_blocked(&mut child);
    signal(child.id(), "TERM");
    assert_eq!(ended(&mut child).code(), Some(130));
}

#[test]
fn a_signal_that_is_ignored_at_start_stays_ignored() {
    for name in SIGNALS {
        let (gate, blocker) = gate();
        // A retry shows that the signal was ignored.
        let stub = Stub::start(move |_, before, _| match before {
            0 => {
                blocker.block();
                Reply::new(503, "{}")
            }
            _ => Reply::new(200, &versions()),
        });
        let shell = stub.shell();
        let file = shell.file("id");
        let running = std::thread::spawn(move || {
            shell.bash(&format!(
                "trap '' {name}; echo $$ >id; exec keywright get /a"
            ))
        });
        gate.wait();
        let id = std::fs::read_to_string(file).unwrap();
        signal(id.trim().parse().unwrap(), name);
        drop(gate);
        running.join().unwrap().expect(0);
    }
}

/// Waits until a program blocks on a full output pipe.
fn wait_until_blocked(child: &mut Child) {
    while ioctl_fionread(child.stdout.as_ref().unwrap()).unwrap() < BLOCKED_BYTES {
        assert!(child.try_wait().unwrap().is_none(), "the program has ended");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn read_of(pipe: Option<impl Read>) -> String {
    let mut text = String::new();
    pipe.unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Half the capacity of a pipe.
const BLOCKED_BYTES: u64 = 32 * 1024;

#[test]
fn an_interrupted_export_to_a_pipe_is_invalid() {
    for (name, format) in SIGNALS.into_iter().zip(["yaml", "json", "yaml"]) {
        let (gate, stub) = blocked_at("/c");
        let shell = stub.shell();
        let arguments = ["export", "--format", format, "--parallel", "1"];
        let mut child = shell.start(&arguments);
        gate.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        let exported = read_of(child.stdout.take());
        exported.assert_contains("/b");
        exported.assert_lacks("/c");
        let import = shell.run_with("import - --dry-run", &exported);
        assert!(import.expect(1).errors.contains("line "), "{exported}");
    }
}

#[test]
fn an_interrupted_export_leaves_files_unchanged() {
    for name in SIGNALS {
        let (gate, stub) = blocked_at("/c");
        let shell = stub.shell();
        fs::write(shell.file("export.yml"), "before").unwrap();
        let before = file_names(shell.folder());
        let mut child = shell.start("export --file export.yml --force");
        gate.wait();
        assert_eq!(file_names(shell.folder()).len(), before.len() + 1);
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        assert_eq!(file_names(shell.folder()), before);
        let after = fs::read_to_string(shell.file("export.yml")).unwrap();
        assert_eq!(after, "before");
    }
}

#[test]
fn an_export_beyond_the_file_size_limit_leaves_no_file() {
    let value = "v".repeat(2_048);
    let stub = Stub::start(move |request, _, _| match request.line.as_str() {
        LISTING => Reply::new(200, &listing(["/a"])),
        _ => Reply::new(200, &password_for(request, &value)),
    });
    let shell = stub.shell();
    let before = file_names(shell.folder());
    let run = shell.bash("ulimit -f 1; keywright export --file export.yml");
    let run = run.expect(1);
    run.errors.assert_contains("could not write the export: ");
    assert_eq!(file_names(shell.folder()), before);
}

#[test]
fn an_export_blocked_by_its_reader_can_be_interrupted() {
    let value = "v".repeat(256 * 1024);
    let stub = Stub::start(move |request, _, _| match request.line.as_str() {
        LISTING => Reply::new(200, &listing(["/a", "/b", "/c"])),
        _ => Reply::new(200, &password_for(request, &value)),
    });
    for name in SIGNALS {
        let mut child = stub.shell().start("export");
        wait_until_blocked(&mut child);
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
    }
}

/// Starts a stub server with three credentials that blocks the request for one.
fn blocked_at(name: &'static str) -> (Gate, Stub) {
    let (gate, blocker) = gate();
    let stub = Stub::start(move |request: &ReceivedRequest, _, _| {
        if request.line == LISTING {
            return Reply::new(200, &listing(["/a", "/b", "/c"]));
        }
        if name_in(request) == name {
            blocker.block();
        }
        Reply::new(200, &password_for(request, "secret"))
    });
    (gate, stub)
}

const LISTING: &str = "GET /api/v1/data?path=";

#[test]
fn an_interrupted_import_reports_its_counts() {
    for name in SIGNALS {
        let (gate, blocker) = gate();
        let stub = Stub::start(move |request, _, _| {
            if is_for(request, 3) {
                blocker.block();
            }
            Reply::new(200, VERSION)
        });
        let shell = stub.shell();
        fixtures::file(&shell, "file", &entries(9));
        let mut child = shell.start("import file --parallel 1");
        gate.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        let errors = read_of(child.stderr.take());
        errors.assert_contains("Set 3 credentials, 0 failed, 6 not attempted.");
    }
}

#[test]
fn an_import_that_waits_for_a_pipe_can_be_interrupted() {
    let stub = Stub::start(|_, _, _| Reply::new(200, VERSION));
    let shell = stub.shell();
    // Opened for reading and writing, the pipe blocks neither end.
    let made = shell.bash("mkfifo pipe");
    made.expect(0);
    let writer = OpenOptions::new()
        .read(true)
        .write(true)
        .open(shell.file("pipe"));
    let mut writer = writer.unwrap();
    let mut child = shell.start("import pipe");
    writer.write_all(b"credentials:").unwrap();
    while ioctl_fionread(&writer).unwrap() > 0 {
        assert!(child.try_wait().unwrap().is_none(), "the import has ended");
        thread::sleep(Duration::from_millis(2));
    }
    // The import has read everything so far, and waits for more.
    signal(child.id(), "INT");
    assert_eq!(ended(&mut child).code(), Some(130));
    assert!(stub.lines().is_empty());
}

#[test]
fn a_lost_connection_fails_only_the_entries_in_progress() {
    import_losing(4..=5, "import file", 3, [18, 2, 0]);
}

#[test]
fn three_consecutive_lost_connections_end_the_import() {
    import_losing(4..=6, "import file --parallel 1", 6, [4, 3, 13]);
}

/// Imports 20 entries, of which the server ends the connections of `lost`. Checks the exit status and the counts.
fn import_losing(lost: RangeInclusive<usize>, command: &str, status: i32, counts: [u64; 3]) {
    let stub = Stub::start(move |request, _, _| {
        if lost.clone().any(|index| is_for(request, index)) {
            Reply::lost()
        } else {
            Reply::new(200, VERSION)
        }
    });
    let shell = stub.shell();
    fixtures::file(&shell, "file", &entries(20));
    let run = shell.run(command).expect(status);
    let summary = run.json();
    let named = ["set", "failed", "not_tried"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(named, counts, "{run:?}");
}

#[test]
fn a_change_of_the_file_during_the_import_is_reported() {
    let (gate, blocker) = gate();
    let stub = Stub::start(move |request, _, _| {
        if is_for(request, 0) {
            blocker.block();
        }
        Reply::new(200, VERSION)
    });
    let shell = stub.shell();
    // More entries than are read ahead.
    fixtures::file(&shell, "file", &entries(100));
    let mut child = shell.start("import file --parallel 1");
    gate.wait();
    let file = OpenOptions::new().append(true).open(shell.file("file"));
    file.unwrap().write_all(b"# changed\n").unwrap();
    drop(gate);
    assert_eq!(ended(&mut child).code(), Some(1));
    let errors = read_of(child.stderr.take());
    errors.assert_contains("file: the file was modified during the import");
}

fn entries(count: usize) -> String {
    let mut file = "credentials:\n".to_owned();
    for index in 0..count {
        writeln!(file, "- {{name: /{index}, type: value, value: v}}").unwrap();
    }
    file
}

fn is_for(request: &ReceivedRequest, index: usize) -> bool {
    request.body.contains(&format!("\"/{index}\""))
}
