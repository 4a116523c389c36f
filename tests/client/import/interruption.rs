//! Imports that are interrupted, lose their connection, or whose file changes.

use std::{fmt::Write as _, fs::OpenOptions, io::Write, thread, time::Duration};

use keywright_harness::{ended, signal};
use rustix::io::ioctl_fionread;
use serde_json::{Value, json};

use crate::{
    given,
    interruption::{SIGNALS, read_of},
    stub::{Asked, Reply, Stub, VERSION, hold},
};

#[test]
fn an_interrupted_import_reports_its_counts() {
    for name in SIGNALS {
        let (held, holder) = hold();
        let stub = Stub::start(move |asked, _, _| {
            if is_for(asked, 3) {
                holder.hold();
            }
            Reply::new(200, VERSION)
        });
        let shell = stub.shell();
        given::file(&shell, "file", &entries(9));
        let mut child = shell.start(&["import", "file", "--parallel", "1"]);
        held.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        let errors = read_of(child.stderr.take());
        assert!(
            errors.contains("set: 3, failed: 0, not attempted: 6"),
            "{errors}"
        );
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
    let mut child = shell.start(&["import", "pipe"]);
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
    let stub = Stub::start(|asked, _, _| {
        if is_for(asked, 4) || is_for(asked, 5) {
            Reply::lost()
        } else {
            Reply::new(200, VERSION)
        }
    });
    let shell = stub.shell();
    given::file(&shell, "file", &entries(20));
    let run = shell.run(&["import", "file"]).expect(3);
    let summary: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(summary["set"], json!(18), "{run:?}");
    assert_eq!(summary["failed"], json!(2), "{run:?}");
    assert_eq!(summary["not_tried"], json!(0), "{run:?}");
}

#[test]
fn three_consecutive_losses_end_the_import() {
    let stub = Stub::start(|asked, _, _| {
        if (4..=6).any(|index| is_for(asked, index)) {
            Reply::lost()
        } else {
            Reply::new(200, VERSION)
        }
    });
    let shell = stub.shell();
    given::file(&shell, "file", &entries(20));
    let run = shell.run(&["import", "file", "--parallel", "1"]).expect(6);
    let summary: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(summary["set"], json!(4), "{run:?}");
    assert_eq!(summary["failed"], json!(3), "{run:?}");
    assert_eq!(summary["not_tried"], json!(13), "{run:?}");
}

#[test]
fn a_change_of_the_file_during_the_import_is_reported() {
    let (held, holder) = hold();
    let stub = Stub::start(move |asked, _, _| {
        if is_for(asked, 0) {
            holder.hold();
        }
        Reply::new(200, VERSION)
    });
    let shell = stub.shell();
    // More entries than are read ahead.
    given::file(&shell, "file", &entries(100));
    let mut child = shell.start(&["import", "file", "--parallel", "1"]);
    held.wait();
    let file = OpenOptions::new().append(true).open(shell.file("file"));
    file.unwrap().write_all(b"# changed\n").unwrap();
    drop(held);
    assert_eq!(ended(&mut child).code(), Some(1));
    let errors = read_of(child.stderr.take());
    assert!(
        errors.contains("file: the file was modified during the import"),
        "{errors}"
    );
}

fn entries(count: usize) -> String {
    let mut file = "credentials:\n".to_owned();
    for index in 0..count {
        writeln!(file, "- {{name: /{index}, type: value, value: v}}").unwrap();
    }
    file
}

fn is_for(asked: &Asked, index: usize) -> bool {
    asked.body.contains(&format!("\"/{index}\""))
}
