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
    hash_with_salt(password, salt)
}

fn hash_with_salt(password: &str, salt: [u8; SALT_BYTES]) -> Result<String, Failure> {
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

#[cfg(test)]
mod tests {
    use sha_crypt::PasswordVerifier;

    use super::*;

    fn is_hash_of(hash: &str, password: &str) -> bool {
        ShaCrypt::SHA512
            .verify_password(password.as_bytes(), hash)
            .is_ok()
    }

    #[test]
    fn hash_matches_crypt() {
        // The output of crypt(3) of libxcrypt 4.4 for the password and the salt.
        for (password, salt, hash) in [
            (
                "x",
                *b"abcdef",
                "$6$V7qMYJaN$rWgrgN9GKTzz9T1YW.5mWu6r9OL0l5bD0IU2Z9W6X7/c3SYtEOXvMcfcZoK/ZwXp4DsfYhsV6EA8.zy05xgTY1",
            ),
            (
                "correct horse battery staple",
                [0; 6],
                "$6$........$RUFEcm6RWrPtwWAjXBtLxf8lQ73s9JzBfkOdbir3xL46P12hcWIYSwPb142XRG698T1ID2tlLs7ArOuPEC2LY1",
            ),
            (
                "pä§s\u{1f511}",
                [255; 6],
                "$6$zzzzzzzz$CawemmaDkR4IcXn/ctL1NzASUsXxi4ke6QdL2Lmoe0n6p81tavxCBHIn21swWS9cqfSossAKizVaKhHBP59kw/",
            ),
            (
                &"long".repeat(50),
                [1, 2, 3, 4, 5, 6],
                "$6$/6k.2IU/$1a6rrwefZ3iJlBp2cnWo3qBULFGQq4/765U7LuxagP.o7XeLfz5Pnm9Do/rE8cQhu0tB52whHV1kRNfUiPfPZ1",
            ),
        ] {
            assert_eq!(hash_with_salt(password, salt).unwrap(), hash, "{password}");
            assert!(is_hash_of(hash, password));
            assert!(!is_hash_of(hash, "another"));
        }
    }
}
