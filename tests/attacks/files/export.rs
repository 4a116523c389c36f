//! Exports to a path at which another user has created a symbolic link.

use std::{fs, os::unix::fs::symlink};

use keywright_harness::{Server, Shell};

use super::{options, set};

#[tokio::test]
async fn an_export_follows_no_link_without_force() {
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "secret").await, 200);
    let shell = Shell::of(&server);
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = |name: &str| elsewhere.path().join(name);
    fs::write(elsewhere("theirs"), "theirs").unwrap();
    fs::create_dir(elsewhere("folder")).unwrap();
    symlink(elsewhere("absent"), elsewhere("chain")).unwrap();
    for target in ["theirs", "absent", "chain", "folder/file"] {
        let link = shell.file("export.yml");
        symlink(elsewhere(target), &link).unwrap();
        let refused = shell.run(&["export", "--file", "export.yml"]).expect(1);
        assert!(
            refused.errors.contains("is a symbolic link; use --force"),
            "{refused:?}"
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(fs::read_to_string(elsewhere("theirs")).unwrap(), "theirs");
    for target in ["absent", "folder/file"] {
        assert!(!elsewhere(target).exists());
    }
    symlink(elsewhere("absent"), shell.file("export.yml")).unwrap();
    shell
        .run(&["export", "--file", "export.yml", "--force"])
        .expect(0);
    let followed = fs::read_to_string(elsewhere("absent")).unwrap();
    assert!(followed.contains("secret"));
    // Symbolic links of the system are followed.
    let piped = shell.run(&["export", "--file", "/dev/stdout"]).expect(0);
    assert!(piped.output.contains("secret"));
}
