//! Plugins whose components are in a registry: Debian's `docker-registry`, and stubs. This module covers pulls at the first
//! start, no further pulls at later starts, pulls at SIGHUP, and the removal of unused files.

mod misbehaving;
mod pushing;
mod signatures;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use keywright_harness::{
    Commanded, DockerRegistry, Options, Reply, Server, Stub, Text, component, digest, is_available,
    key_file, print_message, run_program,
};
use serde_json::json;
use tempfile::TempDir;

/// A folder with an author's component of the type `plain`, and a server's cache.
struct Workshop(TempDir);

impl Workshop {
    fn new() -> Self {
        let workshop = Self(TempDir::new().unwrap());
        fs::copy(component("plain"), workshop.path("plain.wasm")).unwrap();
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes another build of the component that differs only in a custom section, and so in its digest.
    fn build(&self, name: &str) {
        let mut bytes = fs::read(component("plain")).unwrap();
        let length = u8::try_from(name.len()).unwrap();
        bytes.extend([0, length + 1, length]);
        bytes.extend(name.bytes());
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Returns the SHA-256 of a file, as shown by the server.
    fn digest(&self, name: &str) -> String {
        let bytes = fs::read(self.path(name)).unwrap();
        keywright_harness::digest(&bytes).replace("sha256:", "")
    }

    /// Runs `keywright plugin push` in the folder.
    fn push(&self, arguments: &[&str]) -> Commanded {
        run_program(
            self.0.path(),
            &[&["plugin", "push"], arguments].concat(),
            &[],
        )
    }

    /// Pushes a file to a registry, and returns the printed reference.
    #[track_caller]
    fn pushed(&self, registry: &DockerRegistry, file: &str, tag: &str) -> String {
        let target = format!("oci://{}/plugins/plain:{tag}", registry.host());
        let run = self.push(&[file, &target]).expect(0);
        let reference = run.output.strip_suffix('\n').unwrap();
        assert!(
            reference.starts_with(&format!("{target}@sha256:")),
            "{run:#?}"
        );
        reference.to_owned()
    }

    /// Returns options for a server with one plugin with this component. `more` continues its section.
    fn options(&self, component: &str, more: &str) -> Options {
        let section = format!("component = \"{component}\"\ngrants = [\"random\"]\n{more}");
        let cache = self.path("cache");
        Options::default()
            .without_plugins()
            .generator("plain", &section)
            .environment(
                "KEYWRIGHT_PLUGINS__CACHE_DIRECTORY",
                cache.to_str().unwrap(),
            )
    }

    /// Returns options for a server with the plugin that a stub serves with this manifest. `login` continues the registry's section.
    fn served(&self, stub: &Stub, manifest: &str, login: &str) -> Options {
        let digest = digest(manifest.as_bytes());
        let reference = format!("oci://{}/plain@{digest}", host(stub));
        let options = self.options(&reference, "");
        options.extra(&protected(&host(stub), login))
    }

    /// Returns the pulled files in the cache whose names end like this.
    fn pulled_files(&self, end: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path("cache/registry"))
            .into_iter()
            .flatten();
        let paths = files.map(|file| file.unwrap().path());
        paths
            .filter(|path| path.to_string_lossy().ends_with(end))
            .collect()
    }

    /// Generates a minisign key pair, and returns the public key.
    fn minisign_key(&self, name: &str) -> String {
        let (public, secret) = (self.path(&format!("{name}.pub")), self.path(name));
        minisign(&["-G", "-W", "-p", path(&public), "-s", path(&secret)]);
        let public = fs::read_to_string(public).unwrap();
        public.lines().nth(1).unwrap().to_owned()
    }

    fn minisign(&self, key: &str, file: &str) {
        let (key, file) = (self.path(key), self.path(file));
        minisign(&["-S", "-s", path(&key), "-m", path(&file)]);
    }
}

fn minisign(arguments: &[&str]) {
    Commanded::run("minisign", arguments, "").expect(0);
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a registry with this manifest and component.
fn stub(manifest: &str, component: &[u8]) -> Stub {
    let (manifest, component) = (manifest.to_owned(), component.to_owned());
    Stub::start(move |request, _, _| {
        if request.line.contains("/manifests/") {
            Reply::new(200, &manifest)
        } else {
            Reply::bytes(&component)
        }
    })
}

/// Returns the host and port of a stub.
fn host(stub: &Stub) -> String {
    stub.url().replace("https://", "")
}

/// Returns the section for a registry with the certificate of the tests' servers.
fn protected(host: &str, more: &str) -> String {
    format!(
        "[[registry.hosts]]\nhost = \"{host}\"\nplain_http = false\ntrusted_authorities = \"{}\"\n{more}\n",
        key_file("ca.pem").display(),
    )
}

fn manifest(component: &[u8]) -> String {
    serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2,
        },
        "layers": [{
            "mediaType": "application/wasm", "digest": digest(component), "size": component.len(),
        }],
    })
    .to_string()
}

async fn assert_generates(server: &Server, name: &str) {
    server.generated(name, "plain", json!({})).await;
}

#[track_caller]
fn assert_refused(options: &Options, parts: &[&str]) -> String {
    let refusal = Server::refusal(options);
    for part in parts {
        refusal.assert_contains(part);
    }
    refusal
}

#[tokio::test]
async fn cached_component_works_without_its_registry() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1.0.0");
    let options = workshop.options(&reference, "");
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    let actual = server.plugin_digest("plain").await;
    assert_eq!(actual, workshop.digest("plain.wasm"));
    assert!(
        server
            .log()
            .contains("pulled the component from its registry")
    );
    let folder = server.stop().await;

    registry.stop();
    let server = Server::start_in(folder, &options).await;
    assert_generates(&server, "/b").await;
    assert!(server.log().contains("used the cached component"));
    drop(server);

    // Cached files are not trusted: a modified component or manifest is pulled again.
    let cached = workshop.pulled_files(".wasm");
    assert_eq!(cached.len(), 1);
    fs::write(&cached[0], b"\0asm\x0d\0\x01\0").unwrap();
    let away = [
        "the plugin plain",
        &reference,
        "the registry does not respond",
    ];
    let refusal = assert_refused(&options, &away);
    refusal.assert_contains("pulling it again");
    registry.start_again();
    drop(Server::start_with(&options).await);
    let restored = fs::read(&workshop.pulled_files(".wasm")[0]).unwrap();
    let actual = digest(&restored);
    assert_eq!(actual, format!("sha256:{}", workshop.digest("plain.wasm")));
    let manifest = &workshop.pulled_files(".manifest.json")[0];
    let changed = fs::read_to_string(manifest)
        .unwrap()
        .replace("wasm", "wasn");
    fs::write(manifest, changed).unwrap();
    drop(Server::start_with(&options).await);
    registry.stop();
    drop(Server::start_with(&options).await);
}

#[tokio::test]
async fn sighup_pulls_another_digest() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    workshop.build("other");
    let references = ["plain.wasm", "other"].map(|file| workshop.pushed(&registry, file, "1"));
    let server = Server::start_with(&workshop.options(&references[0], "")).await;
    let actual = server.plugin_digest("plain").await;
    assert_eq!(actual, workshop.digest("plain.wasm"));

    let expected = server
        .reload_plugins(&workshop.options(&references[1], ""))
        .await;
    expected.assert_contains("reloaded the plugins");
    let actual = server.plugin_digest("plain").await;
    assert_eq!(actual, workshop.digest("other"));

    let (repository, _) = references[0].split_once('@').unwrap();
    let absent = format!("{repository}@sha256:{}", "0".repeat(64));
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    refused.assert_contains("calls use the previous plugins");
    assert!(server.log().contains("the manifest is not in the registry"));
    registry.stop();
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    refused.assert_contains("calls use the previous plugins");
    assert!(server.log().contains("the registry does not respond"));
    assert_generates(&server, "/a").await;
    let actual = server.plugin_digest("plain").await;
    assert_eq!(actual, workshop.digest("other"));

    // The first component is still cached.
    let expected = server
        .reload_plugins(&workshop.options(&references[0], ""))
        .await;
    expected.assert_contains("reloaded the plugins");
    let actual = server.plugin_digest("plain").await;
    assert_eq!(actual, workshop.digest("plain.wasm"));
}

#[tokio::test]
async fn component_digest_can_also_be_pinned() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let pinned = format!("sha256 = \"{}\"", "0".repeat(64));
    let expected = [
        &*reference,
        "its SHA-256 is",
        "restore the pinned component",
    ];
    assert_refused(&workshop.options(&reference, &pinned), &expected);
    let pinned = format!("sha256 = \"{}\"", workshop.digest("plain.wasm"));
    drop(Server::start_with(&workshop.options(&reference, &pinned)).await);
}

/// A component of exactly the maximum size is pulled. With a limit one byte lower, it is rejected.
#[tokio::test]
async fn component_is_pulled_up_to_the_size_limit() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let bytes = fs::metadata(workshop.path("plain.wasm")).unwrap().len();
    let limited = |bytes: u64| {
        let limit = format!("[registry]\ncomponent_bytes_max = {bytes}");
        workshop.options(&reference, "").extra(&limit)
    };
    let expected = format!("the component is larger than {} bytes", bytes - 1);
    assert_refused(&limited(bytes - 1), &[&expected]);
    assert_eq!(workshop.pulled_files("").len(), 0);
    drop(Server::start_with(&limited(bytes)).await);
}

#[tokio::test]
async fn other_artifacts_are_rejected_with_the_reason() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let config = registry
        .put("plain", "application/vnd.wasm.config.v0+json", b"{}")
        .await;
    let module = registry
        .put("plain", "application/wasm", b"\0asm\x01\0\0\0")
        .await;
    for (layers, expected) in [
        (vec![&module, &module], "it must have exactly one layer"),
        (vec![&module], "convert it to a component"),
    ] {
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers,
            "mediaType": "application/vnd.oci.image.manifest.v1+json"});
        let digest = registry.put_manifest("plain", "1", &manifest).await;
        let reference = format!("oci://{}/plain@{digest}", registry.host());
        assert_refused(&workshop.options(&reference, ""), &[&reference, expected]);
    }
}

#[tokio::test]
async fn check_config_pulls_and_caches_nothing() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let server = Server::start_with(&workshop.options(&reference, "")).await;
    let file = server.directory().join("keywright.toml");
    let check = |cache: &str, arguments: &[&str], status| {
        let cache = workshop.path(cache);
        let variable = (
            "KEYWRIGHT_PLUGINS__CACHE_DIRECTORY",
            cache.to_str().unwrap(),
        );
        let arguments = [&["check-config", file.to_str().unwrap()], arguments].concat();
        run_program(server.directory(), &arguments, &[variable]).expect(status)
    };
    check("absent", &[], 0);
    assert!(!workshop.path("absent").exists());
    registry.stop();
    let checked = check("absent", &[], 1);
    let expected =
        format!("generators.plain.component: {reference}: the registry does not respond");
    checked.output.assert_contains(&expected);
    check("absent", &["--no-plugins"], 0);
    // The server's cache has the component.
    check("cache", &[], 0);

    // Another user could have put a named pipe into the cache.
    if chown(workshop.path("cache"), Some(65_534), None).is_err() {
        return print_message("skipped in part: only root can give a folder to another user");
    }
    check("cache", &[], 1).output.assert_contains(&expected);
}

#[test]
fn inspect_accepts_registry_references() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let inspect = |component: &str, status| {
        let arguments = ["plugin", "inspect", component];
        run_program(workshop.0.path(), &arguments, &[]).expect(status)
    };
    let inspected = inspect(&reference, 0).output;
    assert_eq!(
        inspected,
        inspect("plain.wasm", 0)
            .output
            .replace("plain.wasm", &reference)
    );
    inspected.assert_contains(&workshop.digest("plain.wasm"));
    let (repository, _) = reference.split_once('@').unwrap();
    let refused = inspect(repository, 1).errors;
    refused.assert_contains("the reference has no digest");
    let absent = inspect(&format!("{repository}@sha256:{}", "0".repeat(64)), 1).errors;
    absent.assert_contains("the manifest is not in the registry");
}

#[tokio::test]
async fn unused_files_are_removed_and_loaded_ones_stay() {
    let workshop = Workshop::new();
    workshop.build("other.wasm");
    let component = fs::read(workshop.path("other.wasm")).unwrap();
    let manifest = manifest(&component);
    let registry = stub(&manifest, &component);
    let days = |options: Options| {
        let days = UNUSED_DAYS_MAX.to_string();
        options.environment("KEYWRIGHT_PLUGINS__CACHE_UNUSED_DAYS_MAX", &days)
    };
    let own = days(workshop.options(path(&workshop.path("plain.wasm")), ""));
    let server = Server::start_with(&own).await;
    let others = days(workshop.served(&registry, &manifest, ""));
    let other = Server::start_with(&others).await;
    let loaded = workshop.cached();
    assert!(!workshop.pulled_files("").is_empty());

    let unrelated = "f".repeat(64);
    for name in [
        format!("{unrelated}-1.cwasm"),
        format!("registry/{unrelated}.wasm"),
    ] {
        fs::write(workshop.path("cache").join(name), "").unwrap();
    }
    workshop.leave_unused();
    reload(&server, &own).await;
    assert_eq!(workshop.cached(), loaded);

    // The reload marks loaded files as used. The other server's files are no longer used.
    drop(other);
    reload(&server, &own).await;
    let own_digest = workshop.digest("plain.wasm");
    let is_own = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&own_digest)
    };
    let loaded: BTreeSet<PathBuf> = loaded.iter().filter(is_own).cloned().collect();
    assert!(!loaded.is_empty());
    assert_eq!(workshop.cached(), loaded);
}

impl Workshop {
    /// Returns the compiled and pulled files.
    fn cached(&self) -> BTreeSet<PathBuf> {
        let folders = ["cache", "cache/registry"].map(|folder| self.path(folder));
        let files = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap());
        let paths = files.map(|file| file.unwrap().path());
        paths.filter(|path| path.is_file()).collect()
    }

    /// Sets the last use of all files to before the limit.
    fn leave_unused(&self) {
        let unused = Duration::from_hours(UNUSED_DAYS_MAX * 24) + Duration::from_secs(1);
        for path in self.cached() {
            let file = File::open(path).unwrap();
            file.set_modified(SystemTime::now() - unused).unwrap();
        }
    }
}

async fn reload(server: &Server, options: &Options) {
    let reported = server.reload_plugins(options).await;
    reported.assert_contains("reloaded the plugins");
}

const UNUSED_DAYS_MAX: u64 = 2;
