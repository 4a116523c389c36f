//! The arguments that the commands for plugins share, and the form of their output.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use chrono::DateTime;
use clap::{Args, ValueEnum};
use etcetera::{BaseStrategy, base_strategy::choose_native_strategy};
use indicatif::ProgressBar;
use keywright_client::{json_object, printable_json};
use keywright_registry::{Cache, PinnedReference, RegistryHost, pull};
use keywright_runtime::{
    ComponentSource, Limits, LoadError, NoteReader, PluginUnderTest, SandboxConfig, TestHost,
    TestInputs,
};
use serde_json::{Map, Value};

use super::super::output::AboveProgress;
use crate::{
    config::{ComponentLocation, RegistryConfig, RegistryHostConfig},
    plugin_cache::remove_unused,
    process::{compiler, now, on_threads},
    started::{StartupContext, StartupError},
    test_authority::test_issuers,
    tls::certificates::read_trusted_authorities,
};

/// The component, its settings and its limits.
#[derive(Debug, Args)]
pub(super) struct ComponentArguments {
    /// Component: a file, or `oci://HOST[:PORT]/REPOSITORY[:TAG]@sha256:DIGEST` in a registry
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Settings of the plugin: a JSON object. Other users of the machine can see it.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = json_object)]
    settings: Map<String, Value>,
    /// Limits of each call that differ from the defaults: a JSON object, such as `{"deadline_ms": 1000}`
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = limits)]
    limits: Limits,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "table")]
    pub(super) output: OutputForm,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl ComponentArguments {
    pub(super) fn open(&self, progress: &ProgressBar) -> Result<PluginUnderTest, StartupError> {
        self.open_release(&self.file, progress)
    }

    /// Opens another release of the component, with the same settings and limits.
    pub(super) fn open_release(
        &self,
        file: &Path,
        progress: &ProgressBar,
    ) -> Result<PluginUnderTest, StartupError> {
        let component = match reference(file)? {
            Some(reference) => self.pull(&reference)?,
            None => ComponentSource::File(file.to_owned()),
        };
        let host = host(progress);
        PluginUnderTest::open(component, self.settings.clone(), self.limits, &host)
            .map_err(|cause| not_loaded(file, cause))
    }

    /// Refuses a password if this component and another release come from two registries.
    pub(super) fn check_login(&self, other: &Path) -> Result<(), StartupError> {
        if self.registry.user.is_some()
            && let Some(own) = reference(&self.file)?
            && reference(other)?.is_some_and(|other| other.host() != own.host())
        {
            return Err(StartupError::new(
                "--user applies to one registry, but the components are in two registries; use --docker-config",
            ));
        }
        Ok(())
    }

    /// Pulls a component. Signatures are not checked, and nothing is cached.
    fn pull(&self, reference: &PinnedReference) -> Result<ComponentSource, StartupError> {
        let config = self.registry.config(reference.host())?;
        let pulled = on_threads(async {
            let registry = config.registry(reference.host())?;
            pull(
                &registry,
                reference,
                None,
                &Cache::default(),
                config.limits(),
            )
            .await
            .while_doing(format!("pulling {reference}"))
        });
        Ok(ComponentSource::Bytes {
            name: reference.to_string(),
            bytes: pulled?.component.into(),
        })
    }

    /// Opens the component. Its notes are printed to standard error.
    pub(super) fn open_with_notes(
        &self,
        progress: &ProgressBar,
    ) -> Result<PluginUnderTest, StartupError> {
        let above = progress.clone();
        let reader: NoteReader = Arc::new(move |function, text| {
            let mut errors = AboveProgress(above.clone());
            // Standard error may be closed.
            let _ = writeln!(errors, "note ({function}): {text}");
        });
        Ok(self.open(progress)?.with_notes(reader))
    }
}

/// Returns the reference of a component in a registry, or `None` if the component is a file.
fn reference(component: &Path) -> Result<Option<PinnedReference>, StartupError> {
    let text = component.to_str().map(str::to_owned);
    let location = text.map(ComponentLocation::try_from).transpose();
    Ok(match location.on_file("loading", component)? {
        Some(ComponentLocation::Registry(reference)) => Some(reference),
        Some(ComponentLocation::File(_)) | None => None,
    })
}

/// Returns the error for a component that was not loaded, without the name that only a configured plugin has.
pub(super) fn not_loaded(file: &Path, cause: LoadError) -> StartupError {
    match cause {
        LoadError::Plugin(refused) => StartupError::file("loading", file, refused.refusal),
        cause => StartupError::file("loading", file, cause),
    }
}

/// Returns a host for plugins that caches no compiled components.
pub(super) fn uncached_host() -> TestHost {
    TestHost {
        issuers: test_issuers(),
        cache_directory: None,
        compiler: compiler(
            SandboxConfig::new(PathBuf::new())
                .compile_seconds_max
                .number(),
        ),
        progress: None,
    }
}

/// Returns a host for plugins that caches compiled components and shows the current step.
fn host(progress: &ProgressBar) -> TestHost {
    let cache_directory = choose_native_strategy().ok();
    let cache_directory = cache_directory.map(|folders| folders.cache_dir().join(CACHE));
    if let Some(folder) = &cache_directory {
        remove_unused(folder, CACHED_MAX, SystemTime::now());
    }
    let progress = progress.clone();
    TestHost {
        cache_directory,
        progress: Some(Arc::new(move |step| progress.set_message(step.to_owned()))),
        ..uncached_host()
    }
}

/// The folder for compiled components, in the user's folder for caches.
const CACHE: &str = "keywright/plugins";

/// The time after which a compiled component is removed.
const CACHED_MAX: Duration = Duration::from_hours(24 * 30);

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputForm {
    Json,
    Table,
}

pub(super) fn json(text: &str) -> Result<Value, String> {
    keywright_json::read(text).map_err(|cause| cause.to_string())
}

pub(super) fn inputs(text: &str) -> Result<TestInputs, String> {
    let inputs = json_object(text)?;
    let refused =
        |cause: String| format!("must map each name to an object with type and value: {cause}");
    if let Some((name, _)) = inputs.iter().find(|(_, input)| !input.is_object()) {
        return Err(refused(format!("{name} is not an object")));
    }
    serde_json::from_value(Value::Object(inputs)).map_err(|cause| refused(cause.to_string()))
}

/// Parses a time: RFC 3339, or seconds since 1970.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let parsed = DateTime::parse_from_rfc3339(text).map(|time| u64::try_from(time.timestamp()));
    match (text.parse(), parsed) {
        (Ok(seconds), _) | (Err(_), Ok(Ok(seconds))) => Ok(seconds),
        _ => Err(
            "must be a time such as 2026-01-31T12:00:00Z, or a number of seconds since 1970"
                .to_owned(),
        ),
    }
}

fn limits(text: &str) -> Result<Limits, String> {
    let limits = json_object(text)?;
    if let Some((name, _)) = limits.iter().find(|(_, limit)| !limit.is_u64()) {
        return Err(format!("{name} must be a whole number"));
    }
    let limits: Limits =
        serde_json::from_value(Value::Object(limits)).map_err(|cause| cause.to_string())?;
    match limits.out_of_bounds() {
        Some((name, min, max)) => Err(format!("{name} must be from {min} to {max}")),
        None => Ok(limits),
    }
}

/// Returns the time of a call, in seconds since 1970.
pub(super) fn now_seconds() -> u64 {
    u64::try_from(now().timestamp()).unwrap_or_default()
}

/// Formats JSON with a trailing line break. Characters that control a terminal are escaped: texts of an unknown plugin may
/// contain them.
pub(super) fn pretty(json: &Value) -> String {
    printable_json(&format!("{json:#}\n")).into_owned()
}

/// Serializes a result. An error is a bug.
pub(super) fn to_json(result: &impl serde::Serialize) -> Result<Value, StartupError> {
    serde_json::to_value(result).while_doing("writing the result")
}

/// Access to a registry.
#[derive(Debug, Args)]
pub(super) struct RegistryArguments {
    /// User to log in as
    #[arg(long, value_name = "NAME", requires = "password_file", help_heading = HEADING)]
    user: Option<String>,
    /// File that contains the user's password or access token
    #[arg(long, value_name = "FILE", requires = "user", help_heading = HEADING)]
    password_file: Option<PathBuf>,
    /// Docker login file with users and passwords, such as `~/.docker/config.json`
    #[arg(long, value_name = "FILE", conflicts_with = "user", help_heading = HEADING)]
    docker_config: Option<PathBuf>,
    /// File with the CA certificates to trust (PEM) instead of the platform's. Registries on this machine are then
    /// also accessed over HTTPS.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    trusted_authorities: Option<PathBuf>,
    /// Use plain HTTP, which protects nothing in transit. It is the default for registries on this machine; passwords
    /// are never sent to other registries this way.
    #[arg(long, conflicts_with = "trusted_authorities", help_heading = HEADING)]
    plain_http: bool,
}

impl RegistryArguments {
    pub(super) fn config(&self, host: &RegistryHost) -> Result<RegistryConfig, StartupError> {
        let has_password = self.user.is_some() || self.docker_config.is_some();
        if self.plain_http && has_password && !host.is_loopback() {
            return Err(StartupError::new(
                "passwords are sent over plain HTTP only to this machine; omit --plain-http, or --user and --docker-config",
            ));
        }
        if let Some(file) = &self.trusted_authorities {
            read_trusted_authorities("the registry", file).while_doing("--trusted-authorities")?;
        }
        let known = RegistryHostConfig {
            host: host.clone(),
            user: self.user.clone(),
            password_file: self.password_file.clone(),
            trusted_authorities: self.trusted_authorities.clone(),
            plain_http: self.plain_http(),
        };
        Ok(RegistryConfig {
            docker_config: self.docker_config.clone(),
            hosts: vec![known],
            ..RegistryConfig::default()
        })
    }

    /// Returns the choice between plain HTTP and HTTPS, if the arguments make one.
    fn plain_http(&self) -> Option<bool> {
        let is_protected = self.trusted_authorities.is_some();
        (self.plain_http || is_protected).then_some(self.plain_http)
    }
}

/// The help heading of these arguments.
const HEADING: &str = "Registry";
