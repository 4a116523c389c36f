//! A pseudo-terminal with a program on it.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::programs::signal;

/// A pseudo-terminal with a program on it: its standard input, its standard output and its standard error.
pub struct Terminal {
    child: Child,
    keyboard: File,
    seen: String,
    arriving: Receiver<Vec<u8>>,
}

impl Terminal {
    /// Starts a program on a terminal of 100 columns.
    pub(crate) fn start(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(open(&*name, flags, Mode::empty()).unwrap());
        let size = Winsize {
            ws_row: 30,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).unwrap();
        let child = command
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs)
            .spawn()
            .unwrap();
        // This closes its copies of the other end, so that reading ends when the program exits.
        drop(command);
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, arriving) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading from a terminal whose program has exited fails.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            seen: String::new(),
            arriving,
        }
    }

    /// Waits until these words are on the screen.
    #[track_caller]
    pub fn expect(&mut self, words: &str) -> &mut Self {
        while !self.seen.contains(words) {
            let Ok(bytes) = self.arriving.recv_timeout(PATIENCE) else {
                panic!("{words:?} did not appear: {}", self.seen);
            };
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        self
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) -> &mut Self {
        self.keyboard.write_all(line.as_bytes()).unwrap();
        self.keyboard.write_all(b"\n").unwrap();
        self
    }

    /// Returns whether input is echoed.
    pub fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }

    /// Sends the program a signal, such as `INT`.
    pub fn signal(&mut self, name: &str) -> &mut Self {
        signal(self.child.id(), name);
        self
    }

    /// Waits until the program exits, and returns its status and the whole screen output, with LF line ends.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        loop {
            match self.arriving.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the program did not exit: {}", self.seen),
            }
        }
        let status = self.child.wait().unwrap();
        let seen = std::mem::take(&mut self.seen);
        (status.code(), seen.replace("\r\n", "\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The timeout without output after which the test fails.
const PATIENCE: Duration = Duration::from_mins(10);
