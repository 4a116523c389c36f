//! The sections of a configuration with possible errors: each is read separately, so that an error in one does not hide
//! errors in others.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use figment::{Figment, error::Kind, value::Value};
use keywright_runtime::SandboxConfig;
use serde::de::DeserializeOwned;

use super::{
    AuditConfig, AuthenticationConfig, AuthorizationConfig, CertificatesConfig, DevelopmentConfig,
    EncryptionConfig, LogConfig, ManagementConfig, PluginConfig, RegistryConfig, RetentionConfig,
    ServerSection, StorageConfig, schema::joined,
};

/// The valid sections. An absent optional section has its default.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) server: Option<ServerSection>,
    pub(crate) storage: Option<StorageConfig>,
    pub(crate) encryption: Option<EncryptionConfig>,
    pub(crate) authentication: Option<AuthenticationConfig>,
    pub(crate) audit: Option<AuditConfig>,
    pub(crate) authorization: Option<AuthorizationConfig>,
    pub(crate) plugins: Option<SandboxConfig>,
    pub(crate) registry: Option<RegistryConfig>,
    pub(crate) generators: BTreeMap<String, PluginConfig>,
    pub(crate) resolver: Option<PluginConfig>,
    pub(crate) certificates: Option<CertificatesConfig>,
    pub(crate) retention: Option<RetentionConfig>,
    pub(crate) management: Option<ManagementConfig>,
    pub(crate) log: Option<LogConfig>,
    pub(crate) development_identity_provider: Option<DevelopmentConfig>,
}

/// An unreadable setting and the reason.
pub(crate) type Unreadable = (String, String);

impl Sections {
    /// Reads the valid sections, with relative paths resolved against the folder. Settings in `mistaken` are removed,
    /// so that the rest of their sections can be read. Missing settings are not reported here.
    pub(crate) fn read<'a>(
        figment: &'a Figment,
        folder: &Path,
        mistaken: Vec<&'a str>,
    ) -> (Self, Vec<Unreadable>) {
        let mut reader = Reader {
            figment,
            mistaken,
            unreadable: Vec::new(),
        };
        let mut sections = Self {
            server: reader.section("server"),
            storage: reader.section("storage"),
            encryption: reader.section("encryption"),
            authentication: reader.section_or_default("authentication"),
            audit: reader.section_or_default("audit"),
            authorization: reader.section_or_default("authorization"),
            plugins: reader.section("plugins"),
            registry: reader.section_or_default("registry"),
            generators: reader.generators(),
            resolver: reader.section("resolver"),
            certificates: reader.section_or_default("certificates"),
            retention: reader.section_or_default("retention"),
            management: reader.section_or_default("management"),
            log: reader.section_or_default("log"),
            development_identity_provider: reader.section("development_identity_provider"),
        };
        for path in sections.files_mut() {
            *path = folder.join(&*path);
        }
        (sections, reader.unreadable)
    }

    fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let tls = self.server.iter_mut().map(|server| &mut server.tls);
        let plugins = self.generators.values_mut().chain(&mut self.resolver);
        let development = self.development_identity_provider.iter_mut();
        tls.flat_map(super::TlsConfig::files_mut)
            .chain(self.storage.iter_mut().flat_map(StorageConfig::files_mut))
            .chain(
                self.encryption
                    .iter_mut()
                    .flat_map(EncryptionConfig::files_mut),
            )
            .chain(
                self.authentication
                    .iter_mut()
                    .flat_map(AuthenticationConfig::files_mut),
            )
            .chain(
                self.audit
                    .iter_mut()
                    .filter_map(|audit| audit.file.as_mut()),
            )
            .chain(
                self.plugins
                    .iter_mut()
                    .map(|sandbox| &mut sandbox.cache_directory),
            )
            .chain(plugins.flat_map(PluginConfig::files_mut))
            .chain(self.registry.iter_mut().flat_map(RegistryConfig::files_mut))
            .chain(development.map(|provider| &mut provider.signing_key))
    }
}

struct Reader<'a> {
    figment: &'a Figment,
    mistaken: Vec<&'a str>,
    unreadable: Vec<Unreadable>,
}

impl Reader<'_> {
    /// Reads a section, if it exists and is valid.
    fn section<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let section = self.figment.find_value(name).ok()?;
        self.section_of(name, section)
    }

    /// Reads a section from its value, if it is valid.
    fn section_of<T: DeserializeOwned>(&mut self, name: &str, mut section: Value) -> Option<T> {
        for mistaken in &self.mistaken {
            let within = mistaken.strip_prefix(name);
            if let Some(within) = within.and_then(|within| within.strip_prefix('.')) {
                remove_setting(&mut section, within);
            }
        }
        match T::deserialize(&section) {
            Ok(section) => Some(section),
            Err(errors) => {
                let is_known = |kind: &Kind| matches!(kind, Kind::MissingField(_));
                let named = |error: figment::Error| {
                    let setting = joined(name, &error.path.join("."));
                    (setting, in_words(&error.kind))
                };
                let errors = errors.into_iter().filter(|error| !is_known(&error.kind));
                self.unreadable.extend(errors.map(named));
                None
            }
        }
    }

    /// Reads a section, or returns its default if it is absent.
    fn section_or_default<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        if self.figment.find_value(name).is_err() {
            return Some(T::default());
        }
        self.section(name)
    }

    fn generators(&mut self) -> BTreeMap<String, PluginConfig> {
        let configured = self.figment.find_value("generators").ok();
        let named = configured.and_then(Value::into_dict);
        let named = named.into_iter().flatten();
        named
            .filter_map(|(name, section)| {
                let plugin = self.section_of(&joined("generators", &name), section)?;
                Some((name, plugin))
            })
            .collect()
    }
}

/// Removes a setting from a section.
fn remove_setting(section: &mut Value, setting: &str) {
    let (first, rest) = match setting.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (setting, None),
    };
    let Value::Dict(_, members) = section else {
        return;
    };
    let (member, index) = match first.trim_end_matches(']').split_once('[') {
        Some((member, index)) => (member, index.parse::<usize>().ok()),
        None => (first, None),
    };
    let Some(rest) = rest else {
        // Removing a list item would shift the indices of the others.
        if index.is_none() {
            members.remove(member);
        }
        return;
    };
    match (members.get_mut(member), index) {
        (Some(Value::Array(_, items)), Some(index)) => {
            if let Some(item) = items.get_mut(index) {
                remove_setting(item, rest);
            }
        }
        (Some(member), None) => remove_setting(member, rest),
        _ => {}
    }
}

/// Describes the error, without the value, which may be a secret.
pub(super) fn in_words(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            format!("must be {expected}")
        }
        Kind::InvalidLength(_, expected) => format!("must have {expected}"),
        Kind::UnknownVariant(_, expected) => format!("must be one of {}", expected.join(", ")),
        other => other.to_string(),
    }
}
