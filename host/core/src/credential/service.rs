//! The dependencies of the use cases, the generators, and deleting a credential.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Timelike, Utc};

use crate::{
    Failure,
    authorization::{Authorization, Caller},
    certificate::CertificateSettings,
    credential::{BulkRegenerations, CredentialType, LookupName, PluginIdentity, VersionStore},
    permission::Operation,
    ports::{Certificates, Generator, GeneratorDescription, Generators, PermittedReads},
};

/// The use cases for credentials.
#[derive(Clone)]
pub struct Credentials {
    /// Decides which operations callers may perform.
    pub authorization: Authorization,
    /// The stored versions.
    pub store: VersionStore,
    /// Reads credentials together with the permissions on them.
    pub reads: Arc<dyn PermittedReads>,
    /// The generators.
    pub generators: Arc<dyn Generators>,
    /// Parses certificates and opens issuers.
    pub certificates: Arc<dyn Certificates>,
    /// The settings for all generated certificates.
    pub certificate_settings: CertificateSettings,
    /// The bulk regenerations in progress.
    pub bulk_regenerations: BulkRegenerations,
}

impl Credentials {
    /// Deletes a credential with all its versions. Permissions on its name remain.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if it does not exist.
    pub async fn delete(&self, caller: &Caller, name: &LookupName) -> Result<(), Failure> {
        let permit = self
            .authorization
            .permit(caller, Operation::Delete, name)
            .await?;
        // A missing credential takes two reads and no transaction. So does a credential that is stored in a casing that the
        // caller may not delete: the duration does not reveal which of the two it is.
        let stored = self.store.repository.stored_name(name).await?;
        stored.ok_or(Failure::NotFound)?;
        let deleted = self.store.repository.delete(name).await?;
        permit.record_resource(deleted.ok_or(Failure::NotFound)?);
        Ok(())
    }

    /// Returns the types of this server: set-only types, then types with a generator in alphabetical order.
    #[must_use]
    pub fn types(&self) -> Vec<KnownType> {
        let names = self.generators.credential_types();
        let generated = names.iter().filter_map(|credential_type| {
            let generator = self.generators.generator(credential_type)?;
            Some(KnownType::generated(credential_type, generator.as_ref()))
        });
        KnownType::set_only().into_iter().chain(generated).collect()
    }

    /// Returns the known types: types that can only be set, and types with a generator.
    #[must_use]
    pub fn known_types(&self) -> Vec<String> {
        let generated = self.generators.credential_types();
        [CredentialType::VALUE, CredentialType::JSON]
            .into_iter()
            .map(str::to_owned)
            .chain(
                generated
                    .iter()
                    .map(|credential_type| credential_type.as_str().to_owned()),
            )
            .collect()
    }

    /// Returns the generator of a type, for calls on behalf of a caller.
    pub(super) fn generator(
        &self,
        caller: &Caller,
        credential_type: &CredentialType,
    ) -> Result<Arc<dyn Generator>, Failure> {
        let generator = self.generators.generator(credential_type);
        generator
            .map(|generator| generator.for_actor(caller.actor()))
            .ok_or_else(|| self.type_unknown())
    }

    /// Returns the failure for a type without a generator.
    pub(super) fn type_unknown(&self) -> Failure {
        Failure::TypeUnknown {
            known: self.known_types(),
        }
    }

    /// Returns the current time in whole seconds, as it is passed to guests.
    pub(super) fn now_in_seconds(&self) -> DateTime<Utc> {
        let now = self.store.clock.now();
        now.with_nanosecond(0).unwrap_or(now)
    }

    /// Returns the time this many days from now, clamped to the range of times.
    pub(super) fn time_in_days(&self, days: i64) -> DateTime<Utc> {
        let farthest = if days < 0 {
            DateTime::<Utc>::MIN_UTC
        } else {
            DateTime::<Utc>::MAX_UTC
        };
        TimeDelta::try_days(days)
            .and_then(|delta| self.store.clock.now().checked_add_signed(delta))
            .unwrap_or(farthest)
    }
}

/// A credential type of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownType {
    /// Its name.
    pub name: String,
    /// A one-line summary.
    pub summary: String,
    /// The plugin that generates its values; `None` if values can only be set.
    pub plugin: Option<PluginIdentity>,
    /// The JSON Schema of the parameters, JSON text; `None` if values can only be set.
    pub parameters_schema: Option<String>,
    /// The JSON Schema of its values in responses, JSON text. `writeOnly` properties are secret.
    pub value_schema: String,
}

impl KnownType {
    /// Returns the types whose values can only be set.
    #[must_use]
    pub fn set_only() -> [Self; 2] {
        [
            (CredentialType::VALUE, VALUE_SUMMARY, VALUE_SCHEMA),
            (CredentialType::JSON, JSON_SUMMARY, JSON_SCHEMA),
        ]
        .map(|(name, summary, value_schema)| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            plugin: None,
            parameters_schema: None,
            value_schema: value_schema.to_owned(),
        })
    }

    fn generated(credential_type: &CredentialType, generator: &dyn Generator) -> Self {
        let GeneratorDescription {
            summary,
            parameters_schema,
            value_schema,
        } = generator.description().clone();
        Self {
            name: credential_type.as_str().to_owned(),
            summary,
            plugin: Some(generator.identity().clone()),
            parameters_schema: Some(parameters_schema),
            value_schema,
        }
    }
}

const VALUE_SUMMARY: &str = "A text that callers set.";

const VALUE_SCHEMA: &str = r#"{"type":"string","minLength":1,"writeOnly":true}"#;

const JSON_SUMMARY: &str = "A JSON object with any fields, set by callers.";

const JSON_SCHEMA: &str = r#"{"type":"object","writeOnly":true}"#;
