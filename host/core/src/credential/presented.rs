//! What callers get of a certificate while its authority is being replaced: both certificates of the authority, in `ca`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{
    Failure, Secret,
    authorization::Permit,
    credential::{CredentialVersion, Credentials, service::OpenVersion},
};

impl Credentials {
    /// What callers get of a version that they read or had generated. Where the settings say so, `ca` holds the certificate
    /// that is trusted beside the one that signed, too.
    pub(super) fn presented(
        &self,
        permit: &Permit<'_>,
        mut open: OpenVersion,
    ) -> Result<CredentialVersion, Failure> {
        // Only of certificates the host knows that `ca` is the authority's certificate.
        if self.certificate_settings.concatenates_authorities
            && open.stored.credential_type.is_certificate()
            && let Some(trusted) = &open.content.trusted_ca
        {
            open.content.value = with_trusted(&open.content.value, trusted)?;
        }
        Ok(open.into_version(permit))
    }
}

/// The value with a second certificate in `ca`: the one that signed comes first, and each ends with a line break. What has
/// no `ca` stays as it is. No other member is copied but as a part of the whole.
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
    let both = serde_json::value::to_raw_value(&both).map_err(unwritable)?;
    members.insert("ca".to_owned(), &both);
    serde_json::to_string(&members)
        .map(Secret::new)
        .map_err(unwritable)
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
    fn both_are_trimmed_and_each_ends_with_a_line_break() {
        assert_eq!(
            concatenated(r#"{"ca":"one \n","certificate":"c\n","private_key":null}"#),
            r#"{"ca":"one\ntwo\n","certificate":"c\n","private_key":null}"#
        );
    }

    #[test]
    fn what_has_no_authority_stays_as_it_is() {
        for value in [r#"{"ca":null,"certificate":"c"}"#, r#"{"certificate":"c"}"#] {
            assert_eq!(concatenated(value), value);
        }
    }
}
