//! One encryption key.

use aes_gcm::{
    Aes256Gcm, Nonce,
    aead::{Aead, KeyInit, Payload},
};
use aws_lc_rs::{hkdf, rand};
use zeroize::Zeroizing;

use super::DerivationFailed;

/// A key that encrypts and decrypts. It is zeroized on drop.
pub(super) struct DataKey {
    root: Zeroizing<[u8; KEY_BYTES]>,
    cipher: Aes256Gcm,
}

impl DataKey {
    /// Creates a key. The root itself encrypts nothing: all used keys are derived from it.
    pub(super) fn new(root: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self, DerivationFailed> {
        let key = expand(&root, SEALING_PURPOSE, "")?;
        let cipher = Aes256Gcm::new_from_slice(key.as_slice()).map_err(|_| DerivationFailed)?;
        Ok(Self { root, cipher })
    }

    /// Derives a key for another purpose.
    pub(super) fn derive(
        &self,
        label: &str,
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationFailed> {
        expand(&self.root, LABEL_PURPOSE, label)
    }

    /// Encrypts with a random nonce. Returns the nonce and the ciphertext.
    pub(super) fn encrypt(
        &self,
        associated_data: &[u8],
        plaintext: &[u8],
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).ok()?;
        let payload = Payload {
            msg: plaintext,
            aad: associated_data,
        };
        let ciphertext = self.cipher.encrypt(&Nonce::from(nonce), payload).ok()?;
        Some((nonce.to_vec(), ciphertext))
    }

    /// Decrypts. Returns `None` if the nonce, the ciphertext or the associated data was modified.
    pub(super) fn decrypt(
        &self,
        associated_data: &[u8],
        nonce: &[u8],
        ciphertext: &[u8],
    ) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let payload = Payload {
            msg: ciphertext,
            aad: associated_data,
        };
        self.cipher.decrypt(&Nonce::from(nonce), payload).ok()
    }
}

/// HKDF-SHA-256.
fn expand(
    root: &[u8; KEY_BYTES],
    purpose: &str,
    label: &str,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationFailed> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, HKDF_SALT)
        .extract(root)
        .expand(&[purpose.as_bytes(), label.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|output| output.fill(key.as_mut_slice()))
        .map_err(|_| DerivationFailed)?;
    Ok(key)
}

/// The length of every key, in bytes.
pub(super) const KEY_BYTES: usize = 32;

const NONCE_BYTES: usize = 12;
const HKDF_SALT: &[u8] = b"keywright";

/// The prefix of the label. Neither constant is a prefix of the other.
const SEALING_PURPOSE: &str = "seal";
const LABEL_PURPOSE: &str = "label:";
