//! A configuration that may hold mistakes: its sections, each read on its own, so that a mistake in one leaves the others to
//! be looked at.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use figment::{Figment, error::Kind};
use keywright_runtime::{PluginConfig, SandboxConfig};
use serde::de::DeserializeOwned;

use super::{
    AuditConfig, AuthenticationConfig, AuthorizationConfig, CertificatesConfig, DevelopmentConfig,
    EncryptionConfig, LogConfig, ManagementConfig, ServerSection, StorageConfig, schema::joined,
};

/// The sections that can be read. One that is not there and need not be is what it is then.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) server: Option<ServerSection>,
    pub(crate) storage: Option<StorageConfig>,
    pub(crate) encryption: Option<EncryptionConfig>,
    pub(crate) authentication: Option<AuthenticationConfig>,
    pub(crate) audit: Option<AuditConfig>,
    pub(crate) authorization: Option<AuthorizationConfig>,
    pub(crate) plugins: Option<SandboxConfig>,
    pub(crate) generators: BTreeMap<String, PluginConfig>,
    pub(crate) resolver: Option<PluginConfig>,
    pub(crate) certificates: Option<CertificatesConfig>,
    pub(crate) management: Option<ManagementConfig>,
    pub(crate) log: Option<LogConfig>,
    pub(crate) development_identity_provider: Option<DevelopmentConfig>,
}

/// A setting that can't be read, and why.
pub(crate) type Unreadable = (String, String);

impl Sections {
    /// Reads what can be read, with relative paths made relative to the folder.
    pub(crate) fn read(figment: &Figment, folder: &Path) -> (Self, Vec<Unreadable>) {
        let mut reader = Reader {
            figment,
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
            generators: reader.generators(),
            resolver: reader.section("resolver"),
            certificates: reader.section_or_default("certificates"),
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
            .chain(plugins.map(|plugin| &mut plugin.component))
            .chain(development.map(|provider| &mut provider.signing_key))
    }
}

struct Reader<'a> {
    figment: &'a Figment,
    unreadable: Vec<Unreadable>,
}

impl Reader<'_> {
    /// A section, if it is there and can be read.
    fn section<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.figment.find_value(name).ok()?;
        match self.figment.extract_inner(name) {
            Ok(section) => Some(section),
            Err(errors) => {
                let named = |error: figment::Error| {
                    (joined(name, &error.path.join(".")), in_words(&error.kind))
                };
                self.unreadable.extend(errors.into_iter().map(named));
                None
            }
        }
    }

    /// A section; its default if it is not there.
    fn section_or_default<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        if self.figment.find_value(name).is_err() {
            return Some(T::default());
        }
        self.section(name)
    }

    fn generators(&mut self) -> BTreeMap<String, PluginConfig> {
        let configured = self.figment.find_value("generators").ok();
        let names = configured.and_then(figment::value::Value::into_dict);
        let names = names.into_iter().flatten().map(|(name, _)| name);
        names
            .filter_map(|name| {
                let plugin = self.section(&joined("generators", &name))?;
                Some((name, plugin))
            })
            .collect()
    }
}

/// What is wrong, without the value, which may be a secret.
fn in_words(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) => {
            format!("must be {expected}")
        }
        Kind::InvalidLength(_, expected) => format!("must have {expected}"),
        other => other.to_string(),
    }
}
