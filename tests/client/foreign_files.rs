//! Output paths that are a symbolic link or a named pipe of another user.

use std::{
    fs::{self, File, Permissions},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink},
    path::Path,
};

use keywright_harness::{
    Commanded, Server, Shell, Text, is_available, print_message, server_program,
};
use rustix::io::ioctl_fionread;
use serde_json::json;

/// The commands that write a file, with its path at the end.
const COMMANDS: [&str; 5] = [
    "get /secret --file",
    "interpolate document.json --file",
    "certificates rotate /root --status --bundle",
    "export --file",
    "export --force --file",
];

#[tokio::test]
async fn links_of_another_user_are_refused_and_links_of_root_followed() {
    let Some(folder) = SharedFolder::new().await else {
        return;
    };
    for caller in [ROOT, CALLER] {
        let target = folder.0.file("precious");
        fs::write(&target, "precious").unwrap();
        chown(&target, Some(caller), None).unwrap();
        folder.link("precious", "link", STRANGER);
        folder.link("link", "chain", caller);
        folder.link("absent", "dangling", STRANGER);
        for command in COMMANDS {
            for (path, refused) in [
                ("link", "link"),
                ("chain", "link"),
                ("dangling", "dangling"),
            ] {
                let run = folder.run(caller, &format!("{command} {path}")).expect(1);
                for part in [
                    format!("could not write {path}: the symbolic link "),
                    format!("{refused} belongs to another user (id {STRANGER}); "),
                    "specify the path of its target".to_owned(),
                ] {
                    run.errors.assert_contains(&part);
                }
            }
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(!folder.0.file("absent").exists());
        folder.link("precious", "link", ROOT);
        for path in ["link", "chain"] {
            fs::write(&target, "precious").unwrap();
            folder
                .run(caller, &format!("get /secret --file {path}"))
                .expect(0);
            assert_eq!(fs::read_to_string(&target).unwrap(), SECRET);
        }
    }
}

#[tokio::test]
async fn pipes_of_another_user_are_refused_without_force() {
    let Some(folder) = SharedFolder::new().await else {
        return;
    };
    for caller in [ROOT, CALLER] {
        for command in COMMANDS {
            let mut reader = folder.pipe(STRANGER);
            let run = folder.run(caller, &format!("{command} pipe"));
            let is_forced = command.contains("--force");
            if is_forced {
                run.expect(0);
                let mut read = vec![0; usize::try_from(ioctl_fionread(&reader).unwrap()).unwrap()];
                reader.read_exact(&mut read).unwrap();
                String::from_utf8(read).unwrap().assert_contains(SECRET);
                continue;
            }
            let advice = if command.starts_with("export") {
                "use --force to write to it"
            } else {
                "specify another path"
            };
            let reason =
                format!("the named pipe pipe belongs to another user (id {STRANGER}); {advice}");
            run.expect(1).errors.assert_contains(&reason);
            assert_eq!(ioctl_fionread(&reader).unwrap(), 0, "{command}");
        }
        // Without a reader, opening the pipe would block.
        drop(folder.pipe(STRANGER));
        let run = folder.run(caller, "get /secret --file pipe");
        run.expect(1).errors.assert_contains("another user");
        // All users may create files in this folder, unlike in the rest of `/dev`.
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(memory.path(), Permissions::from_mode(0o755)).unwrap();
        let pipe = memory.path().join("pipe");
        let _reader = folder.pipe_at(&pipe, STRANGER);
        let run = folder.run(caller, &format!("get /secret --file {}", pipe.display()));
        run.expect(1).errors.assert_contains("another user");
        for owner in [ROOT, caller] {
            let reader = folder.pipe(owner);
            folder.run(caller, "get /secret --file pipe").expect(0);
            let length = u64::try_from(SECRET.len()).unwrap();
            assert_eq!(ioctl_fionread(&reader).unwrap(), length);
        }
    }
}

#[tokio::test]
async fn an_unprivileged_user_writes_to_standard_output_by_path() {
    let Some(folder) = SharedFolder::new().await else {
        return;
    };
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let line = format!("bash -c './keywright get /secret --file {path} | cat'");
        let run = folder.0.bash(&as_caller(&line)).expect(0);
        assert_eq!(run.output, SECRET, "{path}");
    }
}

/// The current folder of a shell, which `CALLER` may read and change, with a copy of the program.
struct SharedFolder(
    Shell,
    #[expect(dead_code, reason = "it keeps the server")] Server,
);

impl SharedFolder {
    /// `None` if the test can't create files of other users.
    async fn new() -> Option<Self> {
        if fs::metadata("/proc/self").unwrap().uid() != ROOT {
            print_message("skipped: only root can create files of other users");
            return None;
        }
        if !is_available("setpriv") {
            return None;
        }
        let server = Server::start().await;
        server.stored("/secret", "value", json!(SECRET)).await;
        server.generate_authority("/root", None).await;
        let shell = Shell::of(&server);
        let authority = shell.file("ca.pem").display().to_string();
        let shell = shell.variable("KEYWRIGHT_CLIENT_CA_CERT", &authority);
        fs::write(shell.file("document.json"), "{}").unwrap();
        copy_program(&shell.file("keywright"));
        fs::set_permissions(shell.folder(), Permissions::from_mode(0o755)).unwrap();
        chown(shell.folder(), Some(CALLER), None).unwrap();
        Some(Self(shell, server))
    }

    /// Runs a command as this user.
    fn run(&self, caller: u32, command: &str) -> Commanded {
        let line = format!("timeout 60 ./keywright {command}");
        self.0.bash(&if caller == ROOT {
            line
        } else {
            as_caller(&line)
        })
    }

    /// Creates or replaces a link of this user.
    fn link(&self, target: &str, name: &str, owner: u32) {
        let link = self.0.file(name);
        let _ = fs::remove_file(&link);
        symlink(target, &link).unwrap();
        lchown(&link, Some(owner), None).unwrap();
    }

    /// Creates or replaces `pipe`. Returns its reader.
    fn pipe(&self, owner: u32) -> File {
        self.pipe_at(&self.0.file("pipe"), owner)
    }

    /// Creates or replaces a pipe of this user that all users may write to. Returns its reader.
    fn pipe_at(&self, pipe: &Path, owner: u32) -> File {
        let path = pipe.display();
        let line = format!("rm -f {path}; mkfifo {path}; chmod 666 {path}");
        self.0.bash(&line).expect(0);
        chown(pipe, Some(owner), None).unwrap();
        // Opened for reading and writing, the pipe does not block.
        File::options().read(true).write(true).open(pipe).unwrap()
    }
}

fn copy_program(to: &Path) {
    // The program is large, so it is linked if possible.
    if fs::hard_link(server_program(), to).is_err() {
        fs::copy(server_program(), to).unwrap();
    }
}

/// Returns a line of bash that runs a program as `CALLER`.
fn as_caller(line: &str) -> String {
    format!("setpriv --reuid {CALLER} --regid {CALLER} --clear-groups {line}")
}

const SECRET: &str = "s3cret";

const ROOT: u32 = 0;

/// The user who runs the commands.
const CALLER: u32 = 65_533;

/// The user who owns the links and pipes.
const STRANGER: u32 = 65_534;
