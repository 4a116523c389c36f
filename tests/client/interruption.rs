//! Shutdown signals.

use std::{io::Read, process::Child};

use keywright_harness::{ended, signal};
use rustix::io::ioctl_fionread;

use crate::stub::{Reply, Stub, hold, listing, versions};

/// The shutdown signals.
pub(crate) const SIGNALS: [&str; 3] = ["INT", "TERM", "HUP"];

#[test]
fn each_signal_interrupts_a_verb_that_waits_for_the_server() {
    for name in SIGNALS {
        let (held, holder) = hold();
        let stub = Stub::start(move |_, _, _| {
            holder.hold();
            Reply::new(200, &versions())
        });
        let mut child = stub.shell().start(&["get", "/a"]);
        held.wait();
        signal(child.id(), name);
        assert_eq!(ended(&mut child).code(), Some(130), "{name}");
        assert_eq!(read_of(child.stderr.take()), "keywright: interrupted\n");
        assert_eq!(read_of(child.stdout.take()), "");
    }
}

#[test]
fn a_verb_blocked_by_its_output_pipe_can_be_interrupted() {
    let names: Vec<_> = (0..5_000)
        .map(|index| format!("/some/{index:0>20}"))
        .collect();
    let listing = listing(names.iter().map(String::as_str));
    let stub = Stub::start(move |_, _, _| Reply::new(200, &listing));
    let mut child = stub.shell().start(&["find", "--names"]);
    wait_until_stuck(&mut child);
    signal(child.id(), "TERM");
    assert_eq!(ended(&mut child).code(), Some(130));
}

#[test]
fn a_signal_that_is_ignored_at_start_stays_ignored() {
    for name in SIGNALS {
        let (held, holder) = hold();
        // A retry shows that the signal was ignored.
        let stub = Stub::start(move |_, before, _| match before {
            0 => {
                holder.hold();
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
        held.wait();
        let id = std::fs::read_to_string(file).unwrap();
        signal(id.trim().parse().unwrap(), name);
        drop(held);
        running.join().unwrap().expect(0);
    }
}

/// Waits until a program blocks on a full output pipe.
pub(crate) fn wait_until_stuck(child: &mut Child) {
    while ioctl_fionread(child.stdout.as_ref().unwrap()).unwrap() < STUCK_BYTES {
        assert!(child.try_wait().unwrap().is_none(), "the program has ended");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

pub(crate) fn read_of(pipe: Option<impl Read>) -> String {
    let mut text = String::new();
    pipe.unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Half the capacity of a pipe.
const STUCK_BYTES: u64 = 32 * 1024;
