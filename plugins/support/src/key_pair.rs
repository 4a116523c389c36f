use pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use serde::{Deserialize, Serialize};
use ssh_key::{HashAlg, PrivateKey, PublicKey, private::KeypairData};

use crate::{Failure, Fields, Violation};

/// The value of the credential types for key pairs with a fingerprint.
#[derive(Serialize)]
pub struct KeyPair {
    /// The public key.
    pub public_key: Option<String>,
    /// The private key.
    pub private_key: Option<String>,
    /// The fingerprint of a generated public key in SSH format; `None` for other formats, and for keys that were set.
    pub public_key_fingerprint: Option<String>,
}

impl KeyPair {
    /// Encodes the pair for OpenSSH: the private key unencrypted in the format of OpenSSH's PROTOCOL.key, the public key as a line
    /// of an `authorized_keys` file.
    pub fn for_ssh(keys: KeypairData, comment: String) -> Result<Self, Failure> {
        let private_key = PrivateKey::new(keys, comment).map_err(not_encoded)?;
        let public_key = private_key.public_key();
        Ok(Self {
            public_key: Some(public_key.to_openssh().map_err(not_encoded)?),
            private_key: Some(
                private_key
                    .to_openssh(LineEnding::LF)
                    .map_err(not_encoded)?
                    .to_string(),
            ),
            public_key_fingerprint: Some(ssh_fingerprint(public_key)),
        })
    }

    /// Encodes the pair as PEM: the private key as PKCS#8 (RFC 5958), the public key as `SubjectPublicKeyInfo` (RFC 5280).
    pub fn as_pkcs8(
        private_key: &impl EncodePrivateKey,
        public_key: &impl EncodePublicKey,
    ) -> Result<Self, Failure> {
        let private_key = private_key.to_pkcs8_pem(LineEnding::LF);
        let public_key = public_key.to_public_key_pem(LineEnding::LF);
        Ok(Self {
            public_key: Some(public_key.map_err(not_encoded)?),
            private_key: Some(private_key.map_err(not_encoded)?.to_string()),
            public_key_fingerprint: None,
        })
    }

    /// Checks a pair that a caller sets, as JSON. At least one of the keys is required; a blank key counts as absent.
    ///
    /// The contents of the keys are not checked. The fingerprint is always absent.
    pub fn check(value: &str) -> Result<Self, Failure> {
        Self::parse(value).map_err(Failure::InvalidValue)
    }

    fn parse(value: &str) -> Result<Self, Violation> {
        let mut fields = Fields::parse(value)?;
        let key_pair = Self {
            public_key: fields.take_key("public_key")?,
            private_key: fields.take_key("private_key")?,
            public_key_fingerprint: None,
        };
        fields.ignore("public_key_fingerprint");
        fields.finish()?;
        if key_pair.public_key.is_none() && key_pair.private_key.is_none() {
            return Err(Violation::of_whole(
                "at least one of public_key and private_key is required",
            ));
        }
        Ok(key_pair)
    }
}

/// The format of a key pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyFormat {
    /// The format of OpenSSH.
    #[default]
    Ssh,
    /// PKCS#8.
    Pkcs8,
}

impl KeyFormat {
    /// Takes the parameters `format` and `ssh_comment`. A comment is only allowed with the format `ssh`.
    pub fn take(fields: &mut Fields) -> Result<(Self, String), Violation> {
        let format = match fields.take_filled_text(FORMAT)?.as_deref() {
            None | Some("ssh") => Self::Ssh,
            Some("pkcs8") => Self::Pkcs8,
            Some(_) => return Err(Violation::of(FORMAT, "must be ssh or pkcs8")),
        };
        let comment = take_ssh_comment(fields)?;
        if format == Self::Pkcs8 && !comment.is_empty() {
            let rule = "is only allowed with the format ssh";
            return Err(Violation::of(SSH_COMMENT, rule));
        }
        Ok((format, comment))
    }
}

/// Takes the parameter `ssh_comment`, the comment at the end of a public key's line. It defaults to the empty string.
///
/// # Errors
///
/// If it is not a string, or contains control characters.
pub fn take_ssh_comment(fields: &mut Fields) -> Result<String, Violation> {
    let comment = fields.take_text(SSH_COMMENT)?.unwrap_or_default();
    if comment.chars().any(char::is_control) {
        return Err(Violation::of(
            SSH_COMMENT,
            "must be a single line without control characters",
        ));
    }
    Ok(comment)
}

/// Returns the comment of a public key, up to the first control character: the parameter `ssh_comment` allows none, and text in another
/// line is not part of the key.
pub fn ssh_comment(key: &PublicKey) -> Option<String> {
    let comment = key.comment().as_str().ok()?;
    comment.split(char::is_control).next().map(str::to_owned)
}

/// Returns the SHA-256 fingerprint of a public key as printed by `ssh-keygen -l`, without the prefix `SHA256:`.
pub fn ssh_fingerprint(key: &PublicKey) -> String {
    let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
    fingerprint
        .strip_prefix("SHA256:")
        .map_or(fingerprint.clone(), str::to_owned)
}

fn not_encoded(_error: impl std::error::Error) -> Failure {
    Failure::Other("could not encode the key".to_owned())
}

const FORMAT: &str = "format";
const SSH_COMMENT: &str = "ssh_comment";
