//! The configuration of test servers.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    compiled_plugins, component, key_file, server_program, shipped_plugins, storage, workspace,
};

/// The configuration of a test server: the development server's, with additions.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the options are independent of each other"
)]
pub struct Options {
    generators: Vec<(String, String)>,
    extra: String,
    environment: Vec<(String, String)>,
    server_settings: String,
    without_enforcement: bool,
    tls_settings: String,
    without_resolver: bool,
    identity_provider: Option<String>,
    audit: Option<String>,
    encryption: Option<String>,
    is_watched: bool,
    authentication_settings: String,
    console: Option<String>,
    without_tokens: bool,
    storage: Option<String>,
    without_plugins: bool,
    program: Option<PathBuf>,
    pub(crate) is_reused: bool,
}

impl Options {
    /// Adds a generator, or replaces the shipped generator of the type. `section` contains the lines of its section.
    pub fn generator(mut self, credential_type: &str, section: &str) -> Self {
        self.generators.retain(|(name, _)| name != credential_type);
        self.generators
            .push((credential_type.to_owned(), section.to_owned()));
        self
    }

    /// Adds a generator with this component, which may draw random numbers.
    pub fn random_generator(self, credential_type: &str, component: &Path) -> Self {
        self.generator(credential_type, &section(component, &["random"], ""))
    }

    /// Adds a generator with the component of a shipped plugin or of a test guest, and its grants. `more` contains other lines of
    /// its section.
    pub fn plugin(self, credential_type: &str, name: &str, grants: &[&str], more: &str) -> Self {
        self.generator(credential_type, &section(&component(name), grants, more))
    }

    /// Adds the generator `hostile`, a guest that misbehaves as its settings specify. `limits` and `settings` are the contents of
    /// inline tables.
    pub fn hostile(self, limits: &str, settings: &str) -> Self {
        let tables = format!("limits = {{ {limits} }}\nsettings = {{ {settings} }}");
        let more = format!("derived = true\n{tables}");
        self.plugin("hostile", "hostile", &["random", "signing"], &more)
    }

    /// Adds a generator `hostile` whose calls outlast every test. They share one thread and a queue of length one: the first
    /// call runs, the second waits, and the third is refused.
    pub fn with_a_short_queue(self) -> Self {
        self.hostile("deadline_ms = 600000", "generate = \"loop\"")
            .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
            .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1")
    }

    /// Adds the shipped generators of types beyond the specification.
    pub fn beyond_the_specification(self) -> Self {
        let mut others = shipped_plugins();
        others.retain(|name| name != "interpolation" && !SPECIFIED.contains(&name.as_str()));
        others
            .iter()
            .fold(self, |options, name| match name.as_str() {
                "connection-string" => options.plugin(name, name, &["inputs"], "derived = true"),
                "htpasswd" => options.generator_with_inputs(name),
                _ => options.random_generator(name, &component(name)),
            })
    }

    /// Adds a generator that derives its values from other credentials and random numbers.
    pub fn generator_with_inputs(self, name: &str) -> Self {
        self.plugin(name, name, &["random", "inputs"], "")
    }

    /// Adds sections to the configuration.
    pub fn extra(mut self, sections: &str) -> Self {
        self.extra.push_str(sections);
        self.extra.push('\n');
        self
    }

    /// Adds lines to the section `server`.
    pub fn server_settings(mut self, lines: &str) -> Self {
        self.server_settings.push_str(lines);
        self.server_settings.push('\n');
        self
    }

    /// Adds lines to the section `server.tls`.
    pub fn tls_settings(mut self, lines: &str) -> Self {
        self.tls_settings.push_str(lines);
        self.tls_settings.push('\n');
        self
    }

    /// Adds a variable to the server's environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds lines to the section `authentication`.
    pub fn authentication_settings(mut self, lines: &str) -> Self {
        self.authentication_settings.push_str(lines);
        self.authentication_settings.push('\n');
        self
    }

    /// Adds the console, with these lines in its section. Users log in at the server's own identity provider.
    pub fn console(mut self, lines: &str) -> Self {
        self.console = Some(lines.to_owned());
        self
    }

    /// Trusts another test server's identity provider, at this URL, instead of its own.
    pub fn identity_provider(mut self, url: &str) -> Self {
        self.identity_provider = Some(url.to_owned());
        self
    }

    /// Replaces the shared encryption key. `sections` contains the sections of the new keys.
    pub fn encryption(mut self, sections: &str) -> Self {
        self.encryption = Some(sections.to_owned());
        self
    }

    /// Adds a management listener on a free port, so that the test can read metrics.
    pub fn watched(mut self) -> Self {
        self.is_watched = true;
        self
    }

    /// Removes the settings for token verification.
    pub fn without_tokens(mut self) -> Self {
        self.without_tokens = true;
        self
    }

    /// Replaces the default storage. `lines` contains the lines of the section `storage`.
    pub fn storage(mut self, lines: &str) -> Self {
        self.storage = Some(lines.to_owned());
        self
    }

    /// Removes the resolver, so that a test can add its own with [`Options::extra`].
    pub fn without_resolver(mut self) -> Self {
        self.without_resolver = true;
        self
    }

    /// Removes all plugins. For servers with their own encryption keys, which can't use the shared cache of compiled
    /// plugins.
    pub fn without_plugins(mut self) -> Self {
        self.without_plugins = true;
        self.without_resolver = true;
        self
    }

    /// Replaces the section `audit`, or removes it if `section` is empty.
    pub fn audit(mut self, section: &str) -> Self {
        self.audit = Some(section.to_owned());
        self
    }

    /// Starts this program instead of the server of this build.
    pub fn program(mut self, program: &Path) -> Self {
        self.program = Some(program.to_owned());
        self
    }

    /// Runs the server until it is dropped or the test process exits.
    pub(crate) fn reused(mut self) -> Self {
        self.is_reused = true;
        self
    }

    pub(crate) fn server_program(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(server_program)
    }

    /// Disables the enforcement of permissions.
    pub fn without_enforcement(mut self) -> Self {
        self.without_enforcement = true;
        self
    }

    /// Returns the section `storage` for a second server on the same storage. The first server has these options and this folder.
    pub(crate) fn shared_storage(&self, directory: &Path) -> String {
        storage::shared_settings(directory, self.storage.as_deref())
    }

    pub(crate) fn has_own_identity_provider(&self) -> bool {
        self.identity_provider.is_none() && !self.without_tokens
    }

    /// Returns the environment variables of the server. Variables of the test come last, so that they take precedence.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.environment.iter();
        std::iter::once(MANAGERS).chain(own.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Returns the configuration for a server in this folder, on this port of the loopback address.
    pub(crate) fn configuration(&self, directory: &Path, port: u16) -> String {
        let key = |name| key_file(name).display().to_string();
        let mut text = format!(
            r#"
[server]
listen = "127.0.0.1:{port}"
{server_settings}
[server.tls]
certificate = "{certificate}"
private_key = "{private_key}"
{tls_settings}
[storage]
{storage}

{encryption}
{authentication}
{audit}
[authorization]
enforced = {is_enforced}

[[authorization.permissions]]
path = "/*"
actors = ["uaa-client:developer", "uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10"]
operations = ["read", "write", "delete", "read_acl", "write_acl"]

[plugins]
cache_directory = "{cache}"

[log]
filter = "trace"
format = "json"
"#,
            server_settings = self.server_settings,
            tls_settings = self.tls_settings,
            certificate = key("server.pem"),
            private_key = key("server-key.pem"),
            storage = self
                .storage
                .clone()
                .unwrap_or_else(|| storage::settings(directory)),
            encryption = self.encryption_keys(),
            authentication = self.authentication(port),
            audit = self.audit.as_deref().unwrap_or(AUDIT),
            is_enforced = !self.without_enforcement,
            cache = compiled_plugins().display(),
        );
        for (credential_type, section) in self.all_generators() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "\n[generators.{credential_type}]\n{section}");
        }
        if !self.without_resolver {
            let resolver = component("interpolation");
            let resolver = resolver.display();
            let _ = writeln!(text, "\n[resolver]\ncomponent = \"{resolver}\"");
            let _ = writeln!(text, "[resolver.limits]\ninput_bytes_max = 1114112");
        }
        if self.is_watched {
            text.push_str("\n[management]\nlisten = \"127.0.0.1:0\"\n");
        }
        if let Some(lines) = &self.console {
            let url = format!("https://127.0.0.1:{port}");
            let _ = writeln!(
                text,
                "\n[console]\nurl = \"{url}\"\nclient_id = \"console\"\n{lines}"
            );
        }
        text.push_str(&self.extra);
        text
    }

    fn encryption_keys(&self) -> String {
        self.encryption.clone().unwrap_or_else(|| {
            let file = key_file("encryption.key");
            let file = file.display();
            format!("[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\nactive = true\n")
        })
    }

    fn authentication(&self, port: u16) -> String {
        if self.without_tokens {
            return String::new();
        }
        let authority = key_file("ca.pem");
        let authority = authority.display();
        if let Some(url) = &self.identity_provider {
            return format!(
                "[authentication]\nurl = \"{url}\"\ntrusted_authorities = \"{authority}\"\n{}\n",
                self.authentication_settings,
            );
        }
        format!(
            r#"[authentication]
url = "https://127.0.0.1:{port}/identity"
trusted_authorities = "{authority}"
{authentication_settings}
[development_identity_provider]
signing_key = "{signing_key}"
access_token_seconds = 3600
refresh_token_seconds = 7200

[[development_identity_provider.clients]]
id = "developer"
secret = "developer-secret"

[[development_identity_provider.clients]]
id = "credhub_cli"
secret = ""

[[development_identity_provider.clients]]
id = "console"
secret = ""
redirect_uris = ["https://127.0.0.1:{port}/console/callback"]

[[development_identity_provider.users]]
id = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10"
name = "developer"
password = "developer-password"

[[development_identity_provider.users]]
id = "7c1d0e52-9d0a-4a51-8a55-0b9be2f3c1de"
name = "guest"
password = "guest-password"
"#,
            authentication_settings = self.authentication_settings,
            signing_key = key_file("token-signing-key.pem").display(),
        )
    }

    fn all_generators(&self) -> Vec<(String, String)> {
        let shipped: &[&str] = if self.without_plugins {
            &[]
        } else {
            &SPECIFIED
        };
        let mut all = self.generators.clone();
        for &name in shipped {
            if all.iter().all(|(configured, _)| configured != name) {
                let grants: &[&str] = match name {
                    "certificate" => &["random", "signing"],
                    _ => &["random"],
                };
                all.push((name.to_owned(), section(&component(name), grants, "")));
            }
        }
        all
    }
}

fn section(component: &Path, grants: &[&str], more: &str) -> String {
    format!(
        "component = \"{}\"\ngrants = {grants:?}\n{more}",
        component.display()
    )
}

/// The generators of the specified types.
const SPECIFIED: [&str; 5] = ["certificate", "password", "rsa", "ssh", "user"];

/// The actors with access to `/management` by default.
const MANAGERS: (&str, &str) = (
    "KEYWRIGHT_MANAGEMENT__ACTORS",
    r#"["uaa-client:developer"]"#,
);

/// The audit trail is a file in the server's folder.
const AUDIT: &str = r#"
[audit]
sink = "file"
file = "audit.log"
"#;

/// Returns the `[authentication]` settings of a recipe in the guide to identity providers, without `url`.
pub fn identity_provider_recipe(heading: &str) -> String {
    let guide = workspace().join("host/docs/operating/identity-providers.md");
    let guide = fs::read_to_string(guide).unwrap();
    let heading = format!("\n## {heading}\n");
    let (_, below) = guide.split_once(&heading).expect("the guide's heading");
    let (_, block) = below.split_once("```toml\n[authentication]\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let settings = block.lines().filter(|line| !line.starts_with("url "));
    settings.collect::<Vec<_>>().join("\n")
}
