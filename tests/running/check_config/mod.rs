//! `keywright check-config`.

use std::{fs, net::TcpListener};

use crate::layout::{Layout, set_mode};

#[test]
fn the_example_has_no_mistake_once_its_files_are_there() {
    let layout = Layout::new();
    let checked = layout.check(&["--connect"], &[]).expect(0);
    let file = layout.configuration();
    assert_eq!(checked.output, format!("{} can be used\n", file.display()));
    // Nothing was made.
    assert!(!layout.path("var/lib/keywright/keywright.db").exists());
    assert!(!layout.path("var/lib/keywright/plugin-cache").exists());
    assert!(!layout.path("var/log/keywright/audit.log").exists());
}

#[test]
fn each_mistake_is_told_with_its_setting() {
    let layout = Layout::new();
    let example = layout.example();
    fs::write(layout.path("etc/keywright/empty.key"), "\n").unwrap();
    for (from, to, told) in MISTAKES {
        assert!(example.contains(from), "{from}");
        layout.write_configuration(&example.replacen(from, to, 1));
        let checked = layout.check(&["--no-plugins"], &[]).expect(1);
        let is_told = checked.output.lines().any(|line| line.starts_with(told));
        assert!(is_told, "{told} is not in {checked:#?}");
        assert!(!checked.output.contains("hunter2"), "{checked:#?}");
    }
}

/// What is changed in the example, into what, and what is told of it.
const MISTAKES: [(&str, &str, &str); 34] = [
    ("0.0.0.0:8844", "0.0.0.0", "server.listen: "),
    ("listen = \"0.0.0.0:8844\"", "", "server.listen: is missing"),
    ("4096", "0", "server.connections_max: must be at least 1"),
    (
        "#: connections_per_address_max = 4096",
        "connections_per_address_max = 4097",
        "server.connections_per_address_max: is 4097, which is more than server.connections_max, 4096",
    ),
    (
        "connections_max",
        "conections_max",
        "server.conections_max: there is no such setting; did you mean server.connections_max?",
    ),
    (
        "tls/server.pem",
        "tls/absent.pem",
        "server.tls.certificate: reading the TLS certificate",
    ),
    (
        "tls/server.pem",
        "tls/server-key.pem",
        "server.tls.certificate: ",
    ),
    (
        "tls/server-key.pem",
        "tls/ca.pem",
        "server.tls.private_key: reading the TLS private key",
    ),
    (
        "tls/server-key.pem",
        "tls/other-signing-key.pem",
        "server.tls.private_key: using it for the certificate",
    ),
    (
        "#: client_authorities =",
        "client_authorities = \"tls/server.pem\" #",
        "server.tls.client_authorities: ",
    ),
    (
        "[storage]\nfile",
        "[storage]\n#",
        "storage: the storage must have either a file",
    ),
    (
        "lib/keywright/keywright.db",
        "lib/absent/keywright.db",
        "storage.file: there is no folder",
    ),
    (
        "lib/keywright/keywright.db",
        "lib/keywright",
        "storage.file: ",
    ),
    (
        "[storage]\nfile",
        "[storage]\nurl = \"postgres://k:hunter2@db/k\"\n#",
        "storage.url: reading the URL: the database's URL must not hold a password",
    ),
    (
        "[storage]\nfile",
        "[storage]\nurl = \"mysql://db/k\"\nroot_certificate = \"absent.pem\"\n#",
        "storage.root_certificate: ",
    ),
    (
        "service/encryption.key",
        "service/absent.key",
        "encryption.keys[0].file: reading a secret",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"raw\"\nfile = \"tls/server.pem\"\n#",
        "encryption.keys[0].file: a raw encryption key must be",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"password\"\nfile = \"empty.key\"\n#",
        "encryption.keys[0].file: the secret is empty",
    ),
    (
        "provider = \"raw\"",
        "provider = \"raw\"\nenvironment = \"A\"",
        "encryption.keys[0]: an encryption key must name either",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"raw\"\nenvironment = \"ABSENT\"\n#",
        "encryption.keys[0].environment: the variable ABSENT of the environment is not set",
    ),
    (
        "active = true",
        "active = false",
        "encryption.keys: exactly one key must be active, and 0 are",
    ),
    (
        "url = \"https://uaa",
        "url = \"http://uaa",
        "authentication.url: ",
    ),
    (
        "url = \"https://uaa",
        "#",
        "authentication.url: nobody could log in",
    ),
    (
        "#: trusted_authorities =",
        "trusted_authorities = \"tls/server-key.pem\" #",
        "authentication.url: ",
    ),
    (
        "#: trusted_authorities =",
        "static_key = { public_key = \"tls/ca.pem\", issuer = \"i\" } #",
        "authentication.static_key.public_key: ",
    ),
    (
        "[authentication]",
        "[authentication]\nscopes_required = []",
        "authentication: ",
    ),
    (
        "path = \"/*\"",
        "path = \"/a*\"",
        "authorization.permissions[0]: ",
    ),
    (
        "log/keywright/audit.log",
        "log/absent/audit.log",
        "audit.file: there is no folder",
    ),
    ("sink = \"file\"", "sink = \"off\"", "audit.file: "),
    (
        "listen = \"127.0.0.1:9001\"",
        "listen = \"0.0.0.0:8844\"",
        "management.listen: is the address of server.listen",
    ),
    (
        "#: actors = [\"uaa-client:keywright-admin\"]",
        "actors = [\"admin\"]",
        "management.actors: ",
    ),
    (
        "lib/keywright/plugin-cache",
        "log",
        "plugins.cache_directory: ",
    ),
    (
        "[plugins]",
        "[log]\nfilter = \"a=b=c\"\n[plugins]",
        "log.filter: ",
    ),
    (
        "[plugins]",
        "[development_identity_provider]\nsigning_key = \"k\"\naccess_token_seconds = 1\nrefresh_token_seconds = 1\nclients = [{ id = \"c\", secret = \"hunter2\" }]\nusers = []\n[plugins]",
        "development_identity_provider: the development identity provider is refused on 0.0.0.0:8844",
    ),
];

#[test]
fn each_plugin_that_can_not_be_loaded_is_told() {
    let layout = Layout::new();
    let (kept, _) = layout
        .example()
        .split_once("[generators.certificate]")
        .map(|(kept, rest)| (kept.to_owned(), rest.len()))
        .unwrap();
    let plugins = layout.path("usr/lib/keywright/plugins");
    let plugins = plugins.display();
    let pinned = "0".repeat(64);
    layout.write_configuration(&format!(
        r#"{kept}
[generators.absent]
component = "{plugins}/absent.wasm"
[generators.pem]
component = "{root}/etc/keywright/tls/ca.pem"
[generators.password]
component = "{plugins}/password.wasm"
[generators.ssh]
component = "{plugins}/ssh.wasm"
grants = ["random"]
sha256 = "{pinned}"
[generators.wide]
component = "{plugins}/rsa.wasm"
limits = {{ deadline_ms = 9 }}
[resolver]
component = "{plugins}/password.wasm"
grants = ["random"]
"#,
        root = layout.root().display(),
    ));
    let checked = layout.check(&[], &[]).expect(1);
    for told in [
        "generators.absent.component: loading it: the plugin absent",
        "generators.pem.component: loading it: the plugin pem",
        "generators.password.grants: loading it: the plugin password",
        "generators.ssh.sha256: loading it: the plugin ssh",
        "generators.wide.limits.deadline_ms: must be at least 10",
        "resolver.component: loading it: the plugin resolver",
    ] {
        assert!(
            checked.output.lines().any(|line| line.starts_with(told)),
            "{told}: {checked:#?}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once_and_the_environment_counts() {
    let layout = Layout::new();
    let text = layout.example();
    let text = text.replacen("tls/server.pem", "tls/absent.pem", 1);
    let text = text.replacen("active = true", "activ = true", 1);
    let text = text.replacen("path = \"/*\"", "path = \"/a*\"", 1);
    layout.write_configuration(&text);
    let variables = [
        ("KEYWRIGHT_SERVER__REQUESTS_MAX", "0"),
        ("KEYWRIGHT_AUDIT__FORMT", "json"),
    ];
    let checked = layout.check(&["--no-plugins"], &variables).expect(1);
    let settings: Vec<_> = checked
        .output
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    for setting in [
        "server.requests_max",
        "server.tls.certificate",
        "encryption.keys[0].activ",
        "audit.formt",
        "authorization.permissions[0]",
    ] {
        assert!(settings.contains(&setting), "{setting}: {checked:#?}");
    }
    assert!(
        checked
            .output
            .contains("(KEYWRIGHT_SERVER__REQUESTS_MAX in the environment)")
    );
    assert!(
        checked
            .output
            .contains("(KEYWRIGHT_AUDIT__FORMT in the environment)")
    );
}

#[test]
fn a_list_is_overridden_as_a_whole() {
    let layout = Layout::new();
    let key = layout.path("run/credentials/keywright.service/encryption.key");
    let moved = layout.path("etc/keywright/encryption.key");
    fs::rename(key, &moved).unwrap();
    let keys = format!(
        "[{{provider=\"raw\", file=\"{}\", active=true}}]",
        moved.display()
    );
    let checked = layout.check(&["--no-plugins"], &[]).expect(1);
    assert!(
        checked.output.starts_with("encryption.keys[0].file: "),
        "{checked:#?}"
    );
    let variables = [("KEYWRIGHT_ENCRYPTION__KEYS", keys.as_str())];
    layout.check(&["--no-plugins"], &variables).expect(0);
}

#[test]
fn what_an_operator_should_know_of_is_a_warning_and_no_mistake() {
    let layout = Layout::new();
    let text = layout.example();
    let text = text.replacen("uaa-client:keywright-admin", "keywright-admin", 1);
    let text = text.replacen(
        "[[authorization",
        "[authorization]\nenforced = false\n[[authorization",
        1,
    );
    let text = text.replacen(
        "listen = \"127.0.0.1:9001\"",
        "listen = \"0.0.0.0:9001\"",
        1,
    );
    layout.write_configuration(&text);
    set_mode(
        &layout.path("run/credentials/keywright.service/encryption.key"),
        0o604,
    );
    set_mode(&layout.path("etc/keywright/tls/server-key.pem"), 0o644);
    let checked = layout.check(&["--no-plugins"], &[]).expect(0);
    for told in [
        "warning: authorization.enforced: ",
        "warning: authorization.permissions[0].actors: names \"keywright-admin\"",
        "warning: encryption.keys[0].file: every user of this machine may",
        "warning: management.listen: is no loopback address",
        "warning: server.tls.private_key: every user of this machine may",
    ] {
        assert!(
            checked.output.lines().any(|line| line.starts_with(told)),
            "{told}: {checked:#?}"
        );
    }
    layout.write_configuration(&text.replacen("listen = \"0.0.0.0:9001\"", "", 1));
    let checked = layout.check(&["--no-plugins"], &[]).expect(0);
    assert!(
        checked
            .output
            .contains("warning: management.listen: is not set"),
        "{checked:#?}"
    );
}

#[test]
fn what_is_no_toml_is_told_by_its_line_and_not_repeated() {
    let layout = Layout::new();
    let text = layout.example();
    layout.write_configuration(&format!("token = \"hunter2\nx = 1\n{text}"));
    let checked = layout.check(&[], &[]).expect(1);
    assert!(checked.errors.contains("line 1 is no TOML"), "{checked:#?}");
    assert!(!format!("{checked:?}").contains("hunter2"), "{checked:#?}");
    fs::remove_file(layout.configuration()).unwrap();
    let checked = layout.check(&[], &[]).expect(1);
    assert!(
        checked.errors.contains("there is no configuration at"),
        "{checked:#?}"
    );
}

#[test]
fn a_database_is_connected_to_when_that_is_asked_for() {
    let layout = Layout::new();
    let database = layout.path("var/lib/keywright/keywright.db");
    fs::write(&database, "this is no database, and never was one").unwrap();
    layout.check(&["--no-plugins"], &[]).expect(0);
    let checked = layout.check(&["--no-plugins", "--connect"], &[]).expect(1);
    assert!(
        checked.output.contains("storage.file: connecting to it"),
        "{checked:#?}"
    );

    // Somebody listens there, but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("[storage]\nwait_seconds_max = 1\nurl = \"postgres://k@{address}/k\"\n#");
    layout.write_configuration(&layout.example().replacen("[storage]\nfile", &url, 1));
    layout.check(&["--no-plugins"], &[]).expect(0);
    let checked = layout.check(&["--no-plugins", "--connect"], &[]).expect(1);
    assert!(
        checked.output.contains("storage.url: connecting to it"),
        "{checked:#?}"
    );
}
