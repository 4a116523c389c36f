//! Plugins whose components are in a registry: Debian's `docker-registry`, and stubs.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod login;
mod misbehaving;
mod plain_stub;
mod pulling;
mod pushing;
mod signatures;
mod strangers;
mod unused;

use std::{
    fs,
    path::{Path, PathBuf},
};

use keywright_harness::{
    Commanded, DockerRegistry, Options, Program, Server, component, is_available, key_file,
    run_program,
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

    /// Returns the cached files of registries whose names end like this.
    fn kept(&self, end: &str) -> Vec<PathBuf> {
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

    /// Signs a file with minisign.
    fn minisign(&self, key: &str, file: &str) {
        let (key, file) = (self.path(key), self.path(file));
        minisign(&["-S", "-s", path(&key), "-m", path(&file)]);
    }
}

fn minisign(arguments: &[&str]) {
    Program::run("minisign", arguments, "").expect_success();
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the section for a registry with the certificate of the tests' servers.
fn protected(host: &str, more: &str) -> String {
    format!(
        "[[registry.hosts]]\nhost = \"{host}\"\nplain_http = false\ntrusted_authorities = \"{}\"\n{more}\n",
        key_file("ca.pem").display(),
    )
}

async fn assert_generates(server: &Server, name: &str) {
    let made = server.generate(name, "plain", json!({})).await;
    made.expect(200);
}

/// Returns the digest of the component for the type.
async fn served(server: &Server) -> String {
    let answer = server.get("/api/v1/types").await.expect(200).json();
    let types = answer["types"].as_array().unwrap();
    let listed = types.iter().find(|listed| listed["name"] == "plain");
    listed.unwrap()["plugin"]["digest"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[track_caller]
fn assert_refused(options: &Options, parts: &[&str]) -> String {
    let said = Server::refusal(options);
    for part in parts {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    said
}
