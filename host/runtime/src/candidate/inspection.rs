//! What can be told of a component without making a value.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{Candidate, CandidateFailure, on_calling_thread, words};
use crate::{
    config::Grant,
    generator::DESCRIPTOR,
    host::random::SystemRandom,
    imports,
    resolver::RESOLVER,
    versions::{BuiltFor, named_versions},
};

/// What a component is, what it needs, and what it says of itself.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// What its configuration must grant it.
    pub grants: Vec<Grant>,
    /// The version of the interfaces that it was built for, if it is a plugin; all of them when it mixes several.
    pub interface_version: Option<String>,
    /// What it says of itself, if it is a generator that a server would load.
    pub generator: Option<InspectedGenerator>,
    /// Whether it is a resolver.
    pub is_resolver: bool,
    /// Why no server would load it, if so.
    pub refusal: Option<String>,
}

/// What a generator says of itself.
#[derive(Debug, Serialize)]
pub struct InspectedGenerator {
    /// The credential type that it makes.
    pub credential_type: String,
    /// Its own version.
    pub plugin_version: String,
    /// What it makes, in one line.
    pub summary: String,
    /// How many random bits go into the secret parts of a value at least; none when it derives its values.
    pub entropy_bits_min: Option<u32>,
    /// The parameter that names an issuer.
    pub issuer_parameter: Option<String>,
    /// The JSON Schema of its parameters.
    pub parameters_schema: Value,
    /// The JSON Schema of its values.
    pub value_schema: Value,
}

impl Candidate {
    /// Looks at the component, and asks it what it is.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn inspect(&self) -> Result<Inspection, CandidateFailure> {
        let outline = &self.outline;
        let versions = named_versions(outline);
        let is_resolver = self.is_resolver();
        let mut inspection = Inspection {
            bytes: self.bytes,
            sha256: self.digest.clone(),
            imports: outline.imported().map(str::to_owned).collect(),
            exports: outline.exports.clone(),
            grants: self.config.grants.clone(),
            interface_version: (!versions.is_empty()).then(|| versions.join(", ")),
            generator: None,
            is_resolver,
            refusal: None,
        };
        if is_resolver {
            let checked = BuiltFor::of(outline)
                .and_then(|_| imports::check_imports(outline, &self.config.grants));
            inspection.refusal = checked.err().as_ref().map(words);
            return Ok(inspection);
        }
        match on_calling_thread(|| self.inspect_generator())? {
            Ok(generator) => inspection.generator = Some(generator),
            Err(CandidateFailure::Refused(refused)) => {
                inspection.refusal = Some(words(&refused.refusal));
            }
            Err(failure) => return Err(failure),
        }
        Ok(inspection)
    }

    pub(super) fn is_resolver(&self) -> bool {
        let exports = |interface| imports::exports_any(&self.outline, interface);
        exports(RESOLVER) && !exports(DESCRIPTOR)
    }

    fn inspect_generator(&self) -> Result<InspectedGenerator, CandidateFailure> {
        let guest = self.guest(Arc::new(SystemRandom))?;
        let description = guest.description;
        let schema = |text: &str| keywright_json::read(text).unwrap_or_default();
        Ok(InspectedGenerator {
            credential_type: guest.plugin.identity.name,
            plugin_version: description.plugin_version,
            entropy_bits_min: description.entropy_bits_min,
            issuer_parameter: description.issuer_parameter,
            parameters_schema: schema(&description.told.parameters_schema),
            value_schema: schema(&description.told.value_schema),
            summary: description.told.summary,
        })
    }
}
