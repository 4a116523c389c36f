//! `keywright check-config` and `keywright config-reference`.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt, chown},
    path::Path,
};

use keywright_harness::{
    Commanded, Options, Server, Text, compiled_plugins, key_file, print_message, release,
    run_program, run_program_into_closed_pipe, run_program_with_processor_seconds, server_program,
    workspace,
};

use crate::{
    layout::{Layout, set_mode},
    unprivileged::{UNPRIVILEGED, warm_cache},
};

#[test]
fn the_example_is_valid_once_its_files_exist() {
    let layout = Layout::new();
    let cache = compiled_plugins().display().to_string();
    assert_is_valid(&layout, &[("KEYWRIGHT_PLUGINS__CACHE_DIRECTORY", &cache)]);

    // Without compiled plugins, only with the resolver.
    let example = layout.example();
    let (rest, _) = example.split_once("[generators.certificate]").unwrap();
    let (_, resolver) = example.split_once("[resolver]").unwrap();
    layout.write_configuration(&format!("{rest}[resolver]{resolver}"));
    assert_is_valid(&layout, &[]);
}

#[track_caller]
fn assert_is_valid(layout: &Layout, variables: &[(&str, &str)]) {
    let checked = layout.check(&["--connect"], variables).expect(0);
    let file = layout.configuration();
    assert_eq!(checked.output, format!("{} is valid\n", file.display()));
    // Nothing was created.
    assert!(!layout.path("var/lib/keywright/keywright.db").exists());
    assert!(!layout.path("var/lib/keywright/plugin-cache").exists());
    assert!(!layout.path("var/log/keywright/audit.log").exists());
}

/// Mistakes in the example, and the findings. The file describes its format.
const MISTAKES: &str = include_str!("mistakes.txt");

#[test]
fn each_error_names_its_setting() {
    let layout = Layout::new();
    let example = layout.example();
    for (file, contents) in [
        ("empty.key", "\n"),
        (
            "malformed.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
        (
            "not-base64.pem",
            "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n",
        ),
        (
            "malformed-key.pem",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ),
        (
            "encrypted.pem",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        ),
        ("truncated.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n"),
    ] {
        fs::write(layout.path("etc/keywright").join(file), contents).unwrap();
    }
    fs::write(layout.path("etc/keywright/binary.key"), [0xff; 32]).unwrap();
    let certificate = fs::read_to_string(key_file("server.pem")).unwrap();
    let chain = layout.path("etc/keywright/long-chain.pem");
    fs::write(chain, certificate.repeat(69)).unwrap();
    let same = layout.path("etc/keywright/same.key");
    fs::copy(key_file("encryption.key"), same).unwrap();
    let variables = [
        ("KEY_A", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="),
        ("PASSWORD", "a password of the tests that is long enough"),
    ];
    let lines = MISTAKES.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#") {
        let mistake = line.replace("\\n", "\n");
        let (change, finding) = mistake.split_once(" => ").unwrap();
        let (from, to) = if let Some((from, to)) = change.split_once(" -> ") {
            (from, to.to_owned())
        } else if let Some((below, added)) = change.split_once(" += ") {
            (below, format!("{below}\n{added}"))
        } else {
            ("[plugins]", format!("{change}\n[plugins]"))
        };
        assert!(example.contains(from), "{line}");
        layout.write_configuration(&example.replacen(from, &to, 1));
        let checked = layout.check(&["--no-plugins"], &variables);
        let mut parts = finding.split(" … ");
        let start = parts.next().unwrap();
        let words: Vec<_> = parts.collect();
        let is_expected = |found: &str| {
            found.starts_with(start) && words.iter().all(|words| found.contains(words))
        };
        let is_reported = checked.output.lines().any(is_expected);
        assert!(
            is_reported && checked.status == Some(1),
            "{line}: {checked:#?}"
        );
        checked.output.assert_lacks("hunter2");
    }
}

#[test]
fn a_number_one_past_a_bound_is_reported() {
    let layout = Layout::new();
    layout.write_configuration(&layout.example());
    let reference = fs::read_to_string(workspace().join("host/docs/configuration.md")).unwrap();
    let mut section = "";
    let mut past_bounds = [Vec::new(), Vec::new()];
    // The reference describes the settings of the resolver with those of the generators.
    let (_, of_generators) = reference.split_once("## `[generators.NAME]`").unwrap();
    let (of_generators, _) = of_generators.split_once("## `[resolver]`").unwrap();
    let of_resolver = of_generators.replace("[generators.NAME", "[resolver");
    for line in reference.lines().chain(of_resolver.lines()) {
        if let Some(heading) = line.strip_prefix("## `[") {
            section = heading.trim_end_matches("]`");
            continue;
        }
        let number = line
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` | whole number"));
        let Some((name, rest)) = number else {
            continue;
        };
        // An environment variable can't change a list.
        let bounds = rest.split(" | ").next().unwrap().split_once("from ");
        let Some((_, bounds)) = bounds.filter(|_| !section.starts_with('[')) else {
            continue;
        };
        let (min, max) = bounds.split_once(" to ").unwrap();
        let setting = format!("{section}.{name}").replace("NAME", "certificate");
        let variable = format!("KEYWRIGHT_{}", setting.replace('.', "__").to_uppercase());
        let (below, above) = (
            min.parse::<i64>().unwrap() - 1,
            max.parse::<i64>().unwrap() + 1,
        );
        for (value, all) in [below, above].into_iter().zip(&mut past_bounds) {
            let finding = format!("{setting}: must be from {min} to {max}, not {value}");
            all.push((variable.clone(), value.to_string(), finding));
        }
    }
    for past_bound in past_bounds {
        let variables = past_bound.iter();
        let variables = variables.map(|(variable, value, _)| (&**variable, &**value));
        let variables: Vec<_> = variables.collect();
        let checked = layout.check(&["--no-plugins"], &variables).expect(1);
        for (.., finding) in &past_bound {
            assert_line_starts_with(&checked, finding);
        }
        assert_eq!(past_bound.len(), 57);
    }
}

#[test]
fn each_plugin_that_fails_to_load_is_reported() {
    let layout = Layout::new();
    let example = layout.example();
    let (rest, _) = example.split_once("[generators.certificate]").unwrap();
    let plugins = layout.path("usr/lib/keywright/plugins");
    let plugins = plugins.display();
    let pinned = "0".repeat(64);
    layout.write_configuration(&format!(
        r#"{rest}
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
    for expected in [
        &format!("generators.absent.component: {plugins}/absent.wasm: the file does not exist"),
        "generators.pem.component: ",
        "generators.password.grants: ",
        "generators.ssh.sha256: ",
        "generators.wide.limits.deadline_ms: must be from 10 to 600000, not 9",
        "resolver.component: ",
    ] {
        assert_line_starts_with(&checked, expected);
    }
}

#[test]
fn settings_that_violate_the_schema_of_a_plugin_are_reported() {
    let layout = Layout::new();
    let example = layout.example();
    let (rest, _) = example.split_once("[generators.certificate]").unwrap();
    // This release of the plugin requires the setting `label`.
    let component = layout.path("versioned.wasm");
    let release = release("versioned", ("release: 1.0.0", "release: 1.4.0"));
    fs::write(&component, release).unwrap();
    for (settings, expected) in [
        ("label = 707", "label must be a string"),
        (r#"label = "a", lable = "hunter2""#, "lable is unknown"),
        ("", "label is required"),
    ] {
        layout.write_configuration(&format!(
            "{rest}[generators.versioned]\ncomponent = {component:?}\ngrants = [\"random\"]\nsettings = {{ {settings} }}\n"
        ));
        let output = layout.check(&[], &[]).expect(1).output;
        let start = "generators.versioned.settings: invalid settings: ";
        let is_reported = |line: &str| line.starts_with(start) && line.contains(expected);
        assert!(output.lines().any(is_reported), "{expected}: {output}");
        output.assert_lacks("hunter2");
        output.assert_lacks("707");
    }
}

#[test]
fn all_errors_including_environment_ones_are_reported_at_once() {
    let layout = Layout::new();
    let text = layout.example();
    let text = text.replacen("tls/server.pem", "tls/absent.pem", 1);
    let text = text.replacen("active = true", "activ = true", 1);
    let text = text.replacen("path = \"/*\"", "path = \"/a*\"", 1);
    layout.write_configuration(&text);
    let variables = [
        ("KEYWRIGHT_SERVER__REQUESTS_MAX", "0"),
        ("KEYWRIGHT_AUDIT__FORMT", "json"),
        ("KEYWRIGHT_AUTHENTICATION__TRUSTED_AUTHORITIES", "absent"),
        ("KEYWRIGHT_GENERATORS__NOPE__SHA256", "x"),
        ("KEYWRIGHT_AUDIT__TRUSTED_PROXIES", "10.0.0.1"),
        ("KEYWRIGHT_SERVERS", "x"),
        ("KEYWRIGHT_MANAGEMENT__LISTEN", "x"),
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
        "authorization.permissions[0].path",
    ] {
        assert!(settings.contains(&setting), "{setting}: {checked:#?}");
    }
    for expected in [
        "(KEYWRIGHT_SERVER__REQUESTS_MAX in the environment)",
        "unknown environment variable KEYWRIGHT_AUDIT__FORMT; did you mean KEYWRIGHT_AUDIT__FORMAT?",
        "unknown environment variable KEYWRIGHT_SERVERS; did you mean KEYWRIGHT_SERVER__NAME?",
        "audit.trusted_proxies: must be a list, not a string; write it as [\"a\", \"b\"]",
        "absent: No such file or directory (os error 2) (KEYWRIGHT_AUTHENTICATION__TRUSTED_AUTHORITIES in the environment)",
        "generators.nope.component: is missing (KEYWRIGHT_GENERATORS__NOPE__SHA256 in the environment sets generators.nope)",
        "or localhost:8844 (KEYWRIGHT_MANAGEMENT__LISTEN in the environment)",
    ] {
        checked.output.assert_contains(expected);
    }
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

    let variables = [("KEYWRIGHT_ENCRYPTION__KEYS__0__FILE", "hunter2")];
    let checked = layout.check(&["--no-plugins"], &variables).expect(1);
    checked.output.assert_contains(
        "encryption.keys: must be a list, not a table; set the whole list with KEYWRIGHT_ENCRYPTION__KEYS\n",
    );
}

#[test]
fn risky_settings_are_warnings_not_errors() {
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
    let registries = "\
[registry]
docker_config = \"docker.json\"
[[registry.hosts]]
host = \"registry.example.com\"
plain_http = true
[plugins]";
    let text = text.replacen("[plugins]", registries, 1);
    let settings = "[resolver]\nsettings = { label = \"a\" }";
    let text = text.replacen("[resolver]", settings, 1);
    let console = "[console]\nurl = \"https://a.example\"\nclient_id = \"c\"\n[authentication]\n\
                   scopes_required = []\naudience = \"c\"";
    let text = text.replacen("[authentication]", console, 1);
    let docker = layout.path("etc/keywright/docker.json");
    let login = r#"{"auths": {"registry.example.com": {"auth": "YWRhOnNlY3JldA=="}}}"#;
    fs::write(&docker, login).unwrap();
    set_mode(&docker, 0o600);
    layout.write_configuration(&text);
    set_mode(&layout.configuration(), 0o644);
    set_mode(
        &layout.path("run/credentials/keywright.service/encryption.key"),
        0o604,
    );
    set_mode(&layout.path("etc/keywright/tls/server-key.pem"), 0o644);
    let checked = layout.check(&["--no-plugins"], &[]).expect(0);
    for expected in [
        "warning: authorization.enforced: ",
        "warning: authorization.permissions[0].actors: no caller can log in as \"keywright-admin\"",
        "warning: console.client_id: no scope is required",
        "warning: encryption.keys[0].file: every user of this machine may",
        "warning: management.listen: is not a loopback address",
        "warning: registry.hosts[0].plain_http: sends the password unencrypted over the network",
        "warning: resolver.settings: every user of this machine may",
        "warning: server.tls.private_key: every user of this machine may",
    ] {
        assert_line_starts_with(&checked, expected);
    }
    layout.write_configuration(&text.replacen("listen = \"0.0.0.0:9001\"", "", 1));
    let checked = layout.check(&["--no-plugins"], &[]).expect(0);
    checked
        .output
        .assert_contains("warning: management.listen: is not set");
}

#[test]
fn invalid_toml_is_reported_by_line_without_its_content() {
    let layout = Layout::new();
    let text = layout.example();
    layout.write_configuration(&format!("token = \"hunter2\nx = 1\n{text}"));
    let checked = layout.check(&[], &[]).expect(1);
    checked.errors.assert_contains("malformed TOML in line 1");
    assert!(!format!("{checked:?}").contains("hunter2"), "{checked:#?}");
    fs::remove_file(layout.configuration()).unwrap();
    let checked = layout.check(&[], &[]).expect(1);
    checked
        .errors
        .assert_contains("there is no configuration at");
}

#[test]
fn check_config_connects_to_the_database_only_on_request() {
    let layout = Layout::new();
    let database = layout.path("var/lib/keywright/keywright.db");
    fs::write(&database, "this is not a database").unwrap();
    layout.check(&["--no-plugins"], &[]).expect(0);
    let checked = layout.check(&["--no-plugins", "--connect"], &[]).expect(1);
    checked
        .output
        .assert_contains("could not open the database file ");
    checked
        .output
        .assert_contains(": it is not a SQLite database");

    // Accepts connections, but never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("[storage]\nwait_seconds_max = 1\nurl = \"postgres://k@{address}/k\"\n#");
    layout.write_configuration(&layout.example().replacen("[storage]\nfile", &url, 1));
    layout.check(&["--no-plugins"], &[]).expect(0);
    let checked = layout.check(&["--no-plugins", "--connect"], &[]).expect(1);
    checked
        .output
        .assert_contains("could not reach the database ");
    checked
        .output
        .assert_contains(": it did not respond in time");
}

#[test]
fn a_generator_with_a_dot_in_its_name_is_loaded() {
    let layout = Layout::new();
    let text = layout.example();
    let absent = "[generators.\"a.b\"]\ncomponent = \"absent.wasm\"\n[plugins]";
    layout.write_configuration(&text.replacen("[plugins]", absent, 1));
    let checked = layout.check(&[], &[]).expect(1);
    checked.output.assert_contains("generators.a.b: ");
}

#[test]
fn writing_to_a_closed_pipe_does_not_panic() {
    let layout = Layout::new();
    let folder = layout.path("etc/keywright");
    let commands = [
        &["check-config", "--no-plugins", "keywright.toml"][..],
        &["config-reference"],
    ];
    for command in commands {
        // The pipe is closed, so each write fails.
        let closed = run_program_into_closed_pipe(&folder, command);
        assert_eq!(closed.errors, "", "{command:?}");
        assert_eq!(closed.status, Some(0), "{command:?}");
    }
}

#[test]
fn a_full_device_as_output_and_errors_does_not_panic() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(server_program());
    command
        .arg("config-reference")
        .stdout(full())
        .stderr(full());
    assert_eq!(command.status().unwrap().code(), Some(1));
}

#[test]
fn a_server_names_the_invalid_setting_without_its_value() {
    let options = Options::default().server_settings("requests_max = \"hunter2\"");
    let refusal = Server::refusal(&options);
    refusal.assert_contains("server.requests_max: must be a whole number, not a string");
    refusal.assert_lacks("hunter2");
    let by_variable = Options::default().environment("KEYWRIGHT_AUDIT__SYNC", "hunter2");
    let refusal = Server::refusal(&by_variable);
    refusal.assert_contains("(KEYWRIGHT_AUDIT__SYNC in the environment)");
    refusal.assert_lacks("hunter2");
}

#[test]
fn an_environment_variable_without_a_setting_is_named() {
    let layout = Layout::new();
    for variable in [
        "KEYWRIGHT_PORT",
        "KEYWRIGHT_SERVER__PORT",
        "KEYWRIGHT_SERVR__LISTEN",
        "KEYWRIGHT_SERVER____LISTEN",
        "KEYWRIGHT_SERVER__LISTEN__",
        "Keywright_Server__Tls__Port",
    ] {
        let checked = layout.check(&["--no-plugins"], &[(variable, "hunter2")]);
        let output = checked.expect(1).output;
        output.assert_contains(&format!("unknown environment variable {variable}; "));
        output.assert_lacks("hunter2");
    }
}

#[test]
fn a_variable_nested_past_the_limit_is_named() {
    let layout = Layout::new();
    for (depth, is_named) in [(64, false), (65, true), (50_000, true)] {
        let value = "[{a=".repeat(depth / 2) + &"[".repeat(depth % 2);
        let variables = [("KEYWRIGHT_LOG__FILTER", value.as_str())];
        let checked = layout.check(&["--no-plugins"], &variables).expect(1);
        let named =
            "KEYWRIGHT_LOG__FILTER: arrays and tables must be nested at most 64 levels deep";
        assert_eq!(checked.errors.contains(named), is_named, "{depth}");
    }
    for (depth, is_named) in [(64, false), (65, true), (40_000, true)] {
        let name = format!("KEYWRIGHT{}", "__A".repeat(depth).replacen("__", "_", 1));
        let variables = [(name.as_str(), "x")];
        let checked = layout.check(&["--no-plugins"], &variables).expect(1);
        let named = format!("{name}: arrays and tables must be nested at most 64 levels deep");
        assert_eq!(checked.errors.contains(&named), is_named, "{depth}");
    }
}

#[tokio::test]
async fn cached_components_are_not_compiled_again() {
    // Another server has compiled the plugins under the same key.
    drop(Server::start().await);
    let layout = Layout::new();
    assert_eq!(checked_without_compiling(&layout).status, None);
    warm_cache(&layout);
    checked_without_compiling(&layout).expect(0);

    // Another user could have replaced the cache, and may know its key.
    if fs::metadata(layout.root()).unwrap().uid() != 0 {
        return print_message("skipped in part: only root can give a folder to another user");
    }
    chown(layout.path("var/lib/keywright"), Some(UNPRIVILEGED), None).unwrap();
    assert_eq!(checked_without_compiling(&layout).status, None);
}

#[test]
fn plugins_are_not_compiled_if_there_are_errors() {
    let layout = Layout::new();
    let text = layout.example();
    for (from, to, setting) in [
        ("tls/server.pem", "tls/absent.pem", "server.tls.certificate"),
        ("ssh.wasm", "absent.wasm", "generators.ssh.component"),
    ] {
        layout.write_configuration(&text.replacen(from, to, 1));
        let checked = checked_without_compiling(&layout).expect(1);
        let output = &checked.output;
        output.assert_contains(&format!("\n{setting}: "));
        output.assert_contains("warning: plugins: the components were not compiled");
    }
}

/// Checks the configuration with too little processor time to compile the plugins.
#[track_caller]
fn assert_line_starts_with(checked: &Commanded, expected: &str) {
    let mut lines = checked.output.lines();
    let is_listed = lines.any(|line| line.starts_with(expected));
    assert!(is_listed, "{expected}: {checked:#?}");
}

fn checked_without_compiling(layout: &Layout) -> Commanded {
    let file = layout.configuration();
    let arguments = ["check-config", file.to_str().unwrap()];
    run_program_with_processor_seconds(COMPILING_SECONDS_MIN, layout.root(), &arguments)
}

/// The minimum processor time to compile the plugins, in seconds.
const COMPILING_SECONDS_MIN: u32 = 5;

#[test]
fn the_printed_reference_matches_the_golden_file() {
    let printed = run_program(Path::new("/"), &["config-reference"], &[]).expect(0);
    let golden = fs::read_to_string(workspace().join("host/docs/configuration.md")).unwrap();
    assert!(printed.output == golden, "{}", printed.output);
}
