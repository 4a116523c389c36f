//! Password hashes in crypt(3) format.

use rand_core::CryptoRng;
use sha_crypt::{PasswordHasher, ShaCrypt};

use crate::Failure;

/// Hashes a password with SHA-512 crypt: `$6$`, eight characters of salt, `$`, the hash.
///
/// The hash omits the number of rounds, because it is crypt(3)'s default, 5,000: programs that compare prefixes expect this form.
///
/// # Errors
///
/// [`Failure::Other`] if hashing fails. No caller input causes this.
pub fn password_hash(password: &str, random: &mut impl CryptoRng) -> Result<String, Failure> {
    let mut salt = [0; SALT_BYTES];
    random.fill_bytes(&mut salt);
    let hash = ShaCrypt::SHA512
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|error| Failure::Other(format!("could not hash the password: {error}")))?;
    Ok(hash.as_str().replacen(DEFAULT_ROUNDS, "", 1))
}

/// The longest password, in bytes. The cost of this hash grows with the square of the length: a password of this length takes a
/// fraction of a second, a password of 64 KiB takes half a minute and blocks other calls.
pub const PASSWORD_BYTES_MAX: usize = 4_096;

/// Six bytes are encoded as eight characters of `[a-zA-Z0-9./]`.
const SALT_BYTES: usize = 6;
const DEFAULT_ROUNDS: &str = "rounds=5000$";
