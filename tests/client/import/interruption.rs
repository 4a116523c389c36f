//! An import that is interrupted, loses its connection, or whose file changes under it.

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
fn it_tells_what_it_has_done_when_it_is_interrupted() {
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
            errors.contains("set: 3, failed: 0, not tried: 6"),
            "{errors}"
        );
    }
}

#[test]
fn it_can_be_interrupted_while_it_waits_for_what_is_to_come_through_a_pipe() {
    let stub = Stub::start(|_, _, _| Reply::new(200, VERSION));
    let shell = stub.shell();
    // Its open end is had by both ends at once, so that nobody waits for the other to come.
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
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        thread::sleep(Duration::from_millis(2));
    }
    // All that has come was read, and more may come.
    signal(child.id(), "INT");
    assert_eq!(ended(&mut child).code(), Some(130));
    assert!(stub.lines().is_empty());
}

#[test]
fn a_lost_connection_costs_the_entries_that_were_on_their_way() {
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
fn it_ends_when_the_server_is_out_of_reach_several_times_in_a_row() {
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
fn that_the_file_is_changed_while_it_is_imported_is_told() {
    let (held, holder) = hold();
    let stub = Stub::start(move |asked, _, _| {
        if is_for(asked, 0) {
            holder.hold();
        }
        Reply::new(200, VERSION)
    });
    let shell = stub.shell();
    // More than is read ahead of what is set.
    given::file(&shell, "file", &entries(100));
    let mut child = shell.start(&["import", "file", "--parallel", "1"]);
    held.wait();
    let file = OpenOptions::new().append(true).open(shell.file("file"));
    file.unwrap().write_all(b"# changed\n").unwrap();
    drop(held);
    assert_eq!(ended(&mut child).code(), Some(1));
    let errors = read_of(child.stderr.take());
    assert!(
        errors.contains("file: it was changed while it was read"),
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
