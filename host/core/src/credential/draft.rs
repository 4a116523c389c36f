//! Generating a value: creating the issuer, calling the generator, and checking the result.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    Failure, Secret,
    certificate::{CertificateFacts, DURATION_DAYS_MAX, IssuanceRules},
    credential::{
        CredentialName, CredentialType, Credentials, LookupName, Parameters, VersionAttributes,
        authority::Authority,
        content::{Content, StoredCertificate, fields},
        guest_constraints::{self, COMMON_NAME, DURATION, IS_CA},
        version_store::Draft,
    },
    ports::{CertificateError, CertificateIssuer, Generator, PluginCallError, PluginFaultError},
};

/// Returns the name of the CA in the parameters, if there is one.
pub(super) fn named_issuer(
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Option<LookupName> {
    generator
        .issuer_parameter()
        .and_then(|parameter| parameters.text(parameter))
        .map(LookupName::new)
}

impl Credentials {
    /// Generates a value from canonical parameters and returns it in a draft without metadata. `authority` is the CA that the
    /// parameters name.
    pub(super) async fn generate_draft(
        &self,
        name: &CredentialName,
        credential_type: &CredentialType,
        parameters: &Parameters,
        generator: &dyn Generator,
        authority: Option<&Authority>,
    ) -> Result<Draft, Failure> {
        let now = self.now_in_seconds();
        let issuer = match authority {
            Some(authority) => Some(self.issuer_of(authority, parameters, generator).await?),
            None => None,
        };
        let value = generator.generate(parameters, now, issuer.clone()).await?;
        let is_certificate = credential_type.is_certificate();
        let certificate = if is_certificate {
            let checked = self.check_generated(value.clone(), issuer.clone(), generator);
            Some(checked.await?)
        } else if let Some(issuer) = issuer.as_deref() {
            issuer.signed()
        } else {
            self.declared_certificate(&value, generator)
                .await?
                .map_err(Failure::GeneratedCertificateRefused)?
        };
        let signed_by = authority
            .map(|authority| authority.name.clone())
            .or_else(|| is_certificate.then(|| name.clone()));
        Ok(Draft {
            name: name.clone(),
            credential_type: credential_type.clone(),
            attributes: VersionAttributes {
                is_generated: Some(true),
                certificate,
                signed_by,
                issuer: authority.and_then(|authority| authority.issuer),
                provenance: Some(generator.identity().clone()),
                ..VersionAttributes::default()
            },
            content: Content {
                value,
                parameters: Some(parameters.clone()),
                metadata: None,
                trusted_ca: authority.and_then(|authority| authority.trusted_certificate.clone()),
            },
            unchanged: authority
                .map(|authority| authority.read.clone())
                .into_iter()
                .collect(),
        })
    }

    /// Creates an issuer from a CA, for one call of the generator.
    pub(super) async fn issuer_of(
        &self,
        authority: &Authority,
        parameters: &Parameters,
        generator: &dyn Generator,
    ) -> Result<Arc<dyn CertificateIssuer>, Failure> {
        let certificates = Arc::clone(&self.certificates);
        let certificate = authority.certificate.clone();
        let private_key = authority.private_key.clone();
        let rules = IssuanceRules::of(parameters, self.now_in_seconds());
        let issuer = run_on_plugin_thread(generator, move || {
            certificates.issuer(&certificate, &private_key, rules)
        });
        issuer.await?.map_err(Failure::IssuerUnusable)
    }

    /// Returns the facts of the certificate in the field that the plugin's value schema declares, `None` if the value has none, or
    /// the reason why the field is not a certificate.
    pub(super) async fn declared_certificate(
        &self,
        value: &Secret,
        generator: &dyn Generator,
    ) -> Result<Result<Option<CertificateFacts>, CertificateError>, Failure> {
        let field = generator
            .certificate_field()
            .and_then(|name| fields(value).ok()?.remove(name));
        let text = field.and_then(|field| keywright_json::text(field.get()).ok());
        let Some(certificate) = text.filter(|text| !text.is_empty()) else {
            return Ok(Ok(None));
        };
        let certificates = Arc::clone(&self.certificates);
        let facts = run_on_plugin_thread(generator, move || certificates.facts(&certificate));
        Ok(facts.await?.map(Some))
    }

    async fn check_generated(
        &self,
        value: Secret,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        generator: &dyn Generator,
    ) -> Result<CertificateFacts, Failure> {
        let certificates = Arc::clone(&self.certificates);
        let is_self_signed = issuer.is_none();
        let facts = run_on_plugin_thread(generator, move || {
            let certificate = StoredCertificate::parse(&value)?;
            certificates
                .check_generated(certificate.fields(), issuer.as_deref())
                .map_err(Failure::GeneratedCertificateRefused)
        });
        Ok(CertificateFacts {
            is_self_signed,
            ..facts.await??
        })
    }
}

impl IssuanceRules {
    /// Returns the limits for a certificate with these canonical parameters.
    #[must_use]
    pub fn of(parameters: &Parameters, now: DateTime<Utc>) -> Self {
        let duration_days = parameters
            .field(DURATION)
            .and_then(Value::as_u64)
            .and_then(|days| u32::try_from(days).ok());
        Self {
            common_name: parameters.text(COMMON_NAME).map(str::to_owned),
            may_be_authority: parameters.is_true(IS_CA),
            signing_usages: guest_constraints::signing_usages(parameters),
            duration_days_max: duration_days.unwrap_or(DURATION_DAYS_MAX),
            now,
        }
    }
}

/// Runs a computation on one of the threads for short calls and returns its result.
///
/// # Errors
/// If the queue is full, or the computation panicked.
pub(super) async fn run_on_plugin_thread<T: Send + 'static>(
    generator: &dyn Generator,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PluginCallError> {
    let sender = Arc::new(Mutex::new(None));
    let result = Arc::clone(&sender);
    let work = Box::new(move || {
        let computed = work();
        *sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(computed);
    });
    generator.run_for_host(work).await?;
    let computed = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    computed.ok_or_else(|| PluginCallError::Faulted {
        plugin: generator.identity().name.clone(),
        fault: PluginFaultError::Trapped,
    })
}
