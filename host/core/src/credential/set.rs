//! Setting a credential to a value from the caller.

use zeroize::Zeroizing;

use crate::{
    Failure, Secret,
    authorization::Caller,
    certificate::RSA_BITS_MIN,
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, Metadata, content::Content,
        service::Draft, set_certificate::warn_of_short_key, value,
    },
    permission::Operation,
    ports::AppendCondition,
};

/// A request to set a credential.
#[derive(Debug)]
pub struct Set {
    /// The credential's name.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// The value, as JSON text.
    pub value: Secret,
    /// The caller's metadata.
    pub metadata: Option<Metadata>,
}

impl Credentials {
    /// Sets a credential. Always adds a version.
    ///
    /// # Errors
    /// If the type is unknown or differs from the credential's type, or the value breaks a rule of its type.
    pub async fn set(&self, caller: &Caller, set: Set) -> Result<CredentialVersion, Failure> {
        if set.credential_type.is_certificate() {
            return self.set_certificate(caller, set).await;
        }
        let mut rsa_bits = None;
        let value = match set.credential_type.as_str() {
            CredentialType::VALUE => accept_text(set.value)?,
            CredentialType::JSON => accept_object(set.value)?,
            _ => {
                let generator = self.generator(caller, &set.credential_type)?;
                // Checked here so that no guest gets a value that is too large, and again when its result is encrypted.
                value::check_size(&set.value)?;
                let value = generator.accept(&set.value).await?;
                if set.credential_type.as_str() == CredentialType::RSA {
                    rsa_bits = self.shortest_rsa_key(&value)?;
                }
                value
            }
        };
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &set.name.lookup())
            .await?;
        let draft = Draft {
            name: set.name,
            credential_type: set.credential_type,
            is_generated: Some(false),
            is_transitional: false,
            content: Content {
                value,
                parameters: None,
                metadata: set.metadata,
                trusted_ca: None,
            },
            certificate: None,
            signed_by: None,
            issuer: None,
            provenance: None,
            unchanged: Vec::new(),
        };
        let appended = self.append(&permit, draft, AppendCondition::Always).await?;
        let version = appended.ok_or(Failure::Contended)?;
        warn_of_short_key(&version.stored.name, rsa_bits);
        Ok(version.into_version(&permit))
    }

    /// Checks the length of each key of an RSA key pair and returns the shortest, in bits. Other fields are not checked.
    fn shortest_rsa_key(&self, value: &Secret) -> Result<Option<u32>, Failure> {
        let mut shortest: Option<u32> = None;
        for (name, key) in keywright_json::fields(value.expose()).unwrap_or_default() {
            let key = keywright_json::text(key.get()).map(Zeroizing::new);
            let Some(bits) = key.ok().and_then(|key| self.certificates.rsa_bits(&key)) else {
                continue;
            };
            if bits < RSA_BITS_MIN {
                return Err(Failure::ValueRefused(format!(
                    "{name} has an RSA key of fewer than {RSA_BITS_MIN} bits"
                )));
            }
            shortest = Some(shortest.map_or(bits, |shortest| shortest.min(bits)));
        }
        Ok(shortest)
    }
}

fn accept_text(value: Secret) -> Result<Secret, Failure> {
    match keywright_json::text(value.expose()).map(Zeroizing::new) {
        Ok(text) if !text.is_empty() => Ok(value),
        _ => Err(Failure::ValueRefused(
            "value must be a non-empty string".to_owned(),
        )),
    }
}

fn accept_object(value: Secret) -> Result<Secret, Failure> {
    match keywright_json::fields(value.expose()) {
        Ok(_) => Ok(value),
        _ => Err(Failure::ValueRefused(
            "value must be a JSON object".to_owned(),
        )),
    }
}
