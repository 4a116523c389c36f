//! Adding the other trusted CA certificate to `ca` in responses while a CA is being rotated.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{
    Failure, Secret,
    authorization::Permit,
    credential::{
        CredentialVersion, Credentials,
        content::{ESCAPED_BYTES_MAX, to_secret},
        service::OpenVersion,
    },
};

impl Credentials {
    /// Returns a version for a response. If the settings require it, `ca` also contains the other trusted CA certificate.
    pub(super) fn presented(
        &self,
        permit: &Permit<'_>,
        mut open: OpenVersion,
    ) -> Result<CredentialVersion, Failure> {
        // The host only knows of certificates that `ca` is the CA certificate.
        if self.certificate_settings.concatenates_authorities
            && open.stored.credential_type.is_certificate()
            && let Some(trusted) = &open.content.trusted_ca
        {
            open.content.value = with_trusted(&open.content.value, trusted)?;
        }
        Ok(open.into_version(permit))
    }
}

/// Returns the value with a second certificate in `ca`, after the issuing certificate. Each ends with a line break. A value
/// without `ca` stays unchanged.
fn with_trusted(value: &Secret, trusted: &str) -> Result<Secret, Failure> {
    let malformed = |_| Failure::StoredValueMalformed;
    let unwritable = |_| Failure::StoredValueMalformed;
    let members = keywright_json::fields(value.expose()).map_err(malformed)?;
    let mut members: BTreeMap<String, &RawValue> = members.into_iter().collect();
    let signing = members.get("ca").filter(|ca| ca.get() != "null");
    let Some(signing) = signing else {
        return Ok(value.clone());
    };
    let signing = keywright_json::text(signing.get()).map_err(malformed)?;
    let both = format!("{}\n{}\n", signing.trim(), trusted.trim());
    let bytes_max = value.expose().len() + ESCAPED_BYTES_MAX * both.len();
    let both = serde_json::value::to_raw_value(&both).map_err(unwritable)?;
    members.insert("ca".to_owned(), &both);
    to_secret(&members, bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concatenated(value: &str) -> String {
        let value = Secret::new(value.to_owned());
        with_trusted(&value, "\n two\n\n")
            .unwrap()
            .expose()
            .to_owned()
    }

    #[test]
    fn both_certificates_are_trimmed_and_end_with_a_line_break() {
        assert_eq!(
            concatenated(r#"{"ca":"one \n","certificate":"c\n","private_key":null}"#),
            r#"{"ca":"one\ntwo\n","certificate":"c\n","private_key":null}"#
        );
    }

    #[test]
    fn a_value_without_ca_stays_unchanged() {
        for value in [r#"{"ca":null,"certificate":"c"}"#, r#"{"certificate":"c"}"#] {
            assert_eq!(concatenated(value), value);
        }
    }
}
