//! Inspecting a component without generating a value.

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

/// A description of a component: its interfaces, the grants it requires, and its own description.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// The imported interfaces.
    pub imports: Vec<String>,
    /// The exported interfaces.
    pub exports: Vec<String>,
    /// The grants that its configuration needs.
    pub grants: Vec<Grant>,
    /// The version of the interfaces that it was built for, if it is a plugin; all versions if it mixes several.
    pub interface_version: Option<String>,
    /// Its own description, if it is a generator that a server would load.
    pub generator: Option<InspectedGenerator>,
    /// Whether it is a resolver.
    pub is_resolver: bool,
    /// The reason why a server would refuse it, if any.
    pub refusal: Option<String>,
}

/// A generator's description.
#[derive(Debug, Serialize)]
pub struct InspectedGenerator {
    /// The credential type that it generates.
    pub credential_type: String,
    /// Its own version.
    pub plugin_version: String,
    /// A one-line summary.
    pub summary: String,
    /// The declared minimum of random bits in the secret parts of a value; `None` if it derives its values.
    pub entropy_bits_min: Option<u32>,
    /// The parameter that names an issuer.
    pub issuer_parameter: Option<String>,
    /// The JSON Schema of its parameters.
    pub parameters_schema: Value,
    /// The JSON Schema of its values.
    pub value_schema: Value,
}

impl Candidate {
    /// Inspects the component and calls its `describe` function.
    ///
    /// # Errors
    /// If the operating system can't start a thread.
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
            parameters_schema: schema(&description.declared.parameters_schema),
            value_schema: schema(&description.declared.value_schema),
            summary: description.declared.summary,
        })
    }
}
