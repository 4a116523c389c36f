//! Prepares the component of a configured plugin: reads the file, checks it before compiling, and links it with the granted
//! interfaces.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use aws_lc_rs::digest;
use keywright_core::credential::{CredentialType, PluginIdentity};
use serde_json::Value;
use wasmtime::{Engine, component::Component};

use crate::{
    call::{CallMeasurements, Plugin, Usage},
    config::{ComponentSource, PluginConfig, RuntimeConfig},
    generator::DESCRIPTOR,
    host::RandomSource,
    interfaces::{BuiltFor, check_grants, exports_any, linker, versioned},
    load_error::{PluginLoadError, PluginRefusedError},
    outline::Outline,
    resolver::RESOLVERS,
};

/// The maximum size of a component, in bytes.
pub const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The resolver's name in messages.
const RESOLVER_NAME: &str = "resolver";
/// The maximum number of attempts to create a memory image while the system is busy.
const IMAGE_ATTEMPTS_MAX: u32 = 40;
/// The pause between these attempts.
const IMAGE_PAUSE: Duration = Duration::from_millis(100);

/// Returns the configured plugins, generators first.
pub(crate) fn roles(config: &RuntimeConfig) -> impl Iterator<Item = Role<'_>> {
    let generators = config.generators.iter();
    generators
        .map(|(name, config)| Role {
            name,
            config,
            is_generator: true,
        })
        .chain(config.resolver.iter().map(|config| Role {
            name: RESOLVER_NAME,
            config,
            is_generator: false,
        }))
}

/// A plugin to be loaded.
#[derive(Clone, Copy)]
pub(crate) struct Role<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a PluginConfig,
    pub(crate) is_generator: bool,
}

impl Role<'_> {
    pub(crate) fn refused(&self, refusal: PluginRefusedError) -> PluginLoadError {
        PluginLoadError {
            plugin: self.name.to_owned(),
            is_generator: self.is_generator,
            component: self.config.component.to_string(),
            refusal,
        }
    }
}

impl ComponentSource {
    /// Reads the component.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, PluginRefusedError> {
        let bytes = match self {
            Self::Bytes { bytes, .. } => Cow::Borrowed(&**bytes),
            Self::File(path) => Cow::Owned(read_file(path)?),
        };
        if u64::try_from(bytes.len()).is_ok_and(|length| length > COMPONENT_BYTES_MAX) {
            return Err(PluginRefusedError::ComponentTooLarge {
                bytes_max: COMPONENT_BYTES_MAX,
            });
        }
        if bytes.starts_with(b"\0asm\x01\0\0\0") {
            return Err(PluginRefusedError::ModuleNotComponent);
        }
        Ok(bytes)
    }
}

/// Reads a file, up to one byte more than [`COMPONENT_BYTES_MAX`].
fn read_file(path: &Path) -> Result<Vec<u8>, PluginRefusedError> {
    let unreadable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::IsADirectory => PluginRefusedError::ComponentIsFolder,
        io::ErrorKind::NotFound => PluginRefusedError::ComponentMissing,
        _ => PluginRefusedError::ComponentUnreadable(cause),
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(COMPONENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

/// Returns the SHA-256 of a component after comparing it with the expected digest, if any.
pub(crate) fn checked_digest(
    bytes: &[u8],
    expected: Option<&str>,
) -> Result<String, PluginRefusedError> {
    let digest = digest::digest(&digest::SHA256, bytes);
    let found = hex::encode(digest);
    let Some(expected) = expected else {
        return Ok(found);
    };
    let is_digest = expected.len() == found.len()
        && expected
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return Err(PluginRefusedError::DigestMalformed);
    }
    if expected != found {
        return Err(PluginRefusedError::DigestDiffers {
            expected: expected.to_owned(),
            found,
        });
    }
    Ok(found)
}

/// A component that fits its role, not yet compiled.
pub(crate) struct Uncompiled<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) digest: String,
    pub(crate) checked: CheckedComponent<'a>,
}

impl<'a> Uncompiled<'a> {
    /// Reads the component of a plugin and performs all checks that need no compilation.
    pub(crate) fn read(role: Role<'a>) -> Result<Self, PluginRefusedError> {
        let interfaces: &[_] = if role.is_generator {
            credential_type(role)?;
            &[DESCRIPTOR]
        } else {
            &RESOLVERS
        };
        let bytes = role.config.component.read()?;
        let digest = checked_digest(&bytes, role.config.sha256.as_deref())?;
        let checked = CheckedComponent::check(&Outline::read(&bytes)?, role, interfaces)?;
        Ok(Self {
            bytes,
            digest,
            checked,
        })
    }
}

/// Parses the credential type of a generator from its configured name.
pub(crate) fn credential_type(role: Role<'_>) -> Result<CredentialType, PluginRefusedError> {
    CredentialType::parse(role.name)
        .ok()
        .filter(|parsed| parsed.as_str() == role.name)
        .ok_or(PluginRefusedError::CredentialTypeMalformed)
}

/// The result of checking that a component fits its role.
pub(crate) struct CheckedComponent<'a> {
    role: Role<'a>,
    settings: String,
    built_for: BuiltFor,
}

impl<'a> CheckedComponent<'a> {
    /// Checks a component that must export one of these interfaces, before it is compiled.
    ///
    /// # Errors
    /// If it is built for an unsupported version, lacks the interfaces, has imports that are not granted, or its settings are
    /// too large.
    pub(crate) fn check(
        outline: &Outline,
        role: Role<'a>,
        interfaces: &[&'static str],
    ) -> Result<Self, PluginRefusedError> {
        let config = role.config;
        let settings = Value::Object(config.settings.clone()).to_string();
        if settings.len() > config.limits.input_bytes_max {
            return Err(PluginRefusedError::SettingsTooLarge);
        }
        let built_for = BuiltFor::of(outline)?;
        if !exports_any(outline, interfaces) {
            let missing = interfaces.first().copied().unwrap_or_default();
            let missing = versioned(missing, built_for.supported);
            return Err(PluginRefusedError::ExportMissing {
                is_generator: *interfaces == [DESCRIPTOR],
                interface: missing,
            });
        }
        check_grants(outline, &config.grants)?;
        Ok(Self {
            role,
            settings,
            built_for,
        })
    }
}

/// Links a component with only the interfaces that its configuration grants.
///
/// # Errors
/// If its imports differ from the host's interfaces, or the system denies memory for its initial memory image.
pub(crate) fn link(
    engine: &Engine,
    component: &Component,
    digest: String,
    checked: CheckedComponent<'_>,
    random: Arc<dyn RandomSource>,
) -> Result<Plugin, PluginRefusedError> {
    let CheckedComponent {
        role,
        settings,
        built_for,
    } = checked;
    let config = role.config;
    create_image(component).map_err(PluginRefusedError::ImageNotCreated)?;
    let component = linker(engine, &config.grants)
        .and_then(|linker| linker.instantiate_pre(component))
        .map_err(PluginRefusedError::ImportDiffers)?;
    Ok(Plugin {
        identity: PluginIdentity {
            name: role.name.to_owned(),
            version: String::new(),
            digest,
            interface_version: built_for.named,
        },
        wit_version: built_for.supported,
        component,
        settings,
        settings_schema: None,
        limits: config.limits,
        random,
        notes: None,
        usage: Arc::new(Usage::default()),
        measurements: Arc::new(CallMeasurements::default()),
    })
}

/// Creates the initial memory image of a component when the plugin is loaded. Each instance starts with a copy of it. The first
/// call would otherwise create it, within the guest's deadline, and its failure would count as the guest's fault.
///
/// The engine seals an in-memory file against writes (`F_SEAL_WRITE`). Linux refuses that while anything else, such as its own
/// memory reclaim, holds a page of the file, and waits for about 150 ms at most. Hence the retries.
fn create_image(component: &Component) -> wasmtime::Result<()> {
    while_busy(IMAGE_PAUSE, || component.initialize_copy_on_write_image())
}

fn while_busy(
    pause: Duration,
    mut attempt: impl FnMut() -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    for _ in 1..IMAGE_ATTEMPTS_MAX {
        match attempt() {
            Err(cause) if is_busy(&cause) => thread::sleep(pause),
            outcome => return outcome,
        }
    }
    attempt()
}

fn is_busy(cause: &wasmtime::Error) -> bool {
    cause
        .root_cause()
        .downcast_ref::<io::Error>()
        .is_some_and(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcome of consecutive attempts with these results, and the number of attempts.
    fn attempts_of(
        results: impl IntoIterator<Item = Option<io::ErrorKind>>,
    ) -> (Option<io::ErrorKind>, u32) {
        let (mut results, mut attempts) = (results.into_iter(), 0);
        let outcome = while_busy(Duration::ZERO, || {
            attempts += 1;
            match results.next().flatten() {
                Some(kind) => Err(wasmtime::Error::new(io::Error::from(kind)).context("sealing")),
                None => Ok(()),
            }
        });
        let kind = |cause: wasmtime::Error| {
            let cause = cause
                .root_cause()
                .downcast_ref::<io::Error>()
                .map(io::Error::kind);
            cause.expect("the attempt's own error")
        };
        (outcome.err().map(kind), attempts)
    }

    #[test]
    fn a_busy_error_of_the_system_is_retried() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(attempts_of([busy, busy, None]), (None, 3));
    }

    #[test]
    fn retries_end_when_the_system_stays_busy() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(
            attempts_of(std::iter::repeat(busy)),
            (busy, IMAGE_ATTEMPTS_MAX)
        );
    }

    #[test]
    fn any_other_failure_is_final() {
        let none_left = Some(io::ErrorKind::OutOfMemory);
        assert_eq!(attempts_of([none_left, None]), (none_left, 1));
    }
}
