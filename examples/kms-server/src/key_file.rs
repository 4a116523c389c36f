//! Encryption with a key in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use tonic::Status;

use crate::{messages::VersionResponse, service::KeyKeeper};

/// Encrypts with AES-256-GCM and the key in a file. The result is a random nonce of 12 bytes, the ciphertext and the tag.
pub struct KeyFile {
    key: RandomizedNonceKey,
}

impl KeyFile {
    /// Opens a file of 32 bytes. If it does not exist, creates it with random bytes, readable only by its owner.
    pub fn open(path: &Path) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => make(path)?,
            read => read?,
        };
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} must have {KEY_BYTES} bytes", path.display()),
            )
        })?;
        Ok(Self { key })
    }
}

impl KeyKeeper for KeyFile {
    fn version(&self) -> VersionResponse {
        VersionResponse {
            version: "v1beta1".to_owned(),
            runtime_name: env!("CARGO_PKG_NAME").to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, Status> {
        let mut encrypted = plain.to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::empty(), &mut encrypted)
            .map_err(|_| Status::internal("the cipher failed"))?;
        Ok([nonce.as_ref().as_slice(), &encrypted].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Result<Vec<u8>, Status> {
        let refused = || Status::invalid_argument("not encrypted with this key");
        let (nonce, encrypted) = cipher.split_at_checked(NONCE_LEN).ok_or_else(refused)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| refused())?;
        let mut encrypted = encrypted.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::empty(), &mut encrypted)
            .map_err(|_| refused())?;
        Ok(plain.to_vec())
    }
}

/// Creates the key file. If another process creates it first, returns that process's key, or a part of it that is not yet complete.
fn make(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| io::Error::other("could not read random bytes"))?;
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => return fs::read(path),
        opened => {
            let mut file = opened?;
            file.write_all(&key)?;
            file.sync_all()?;
            // Without its entry in the folder, the key would be lost with everything that it encrypts.
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
    }
    Ok(key)
}

const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_key_is_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = make(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), made);
        assert_eq!(made.len(), KEY_BYTES);
        let permissions = fs::metadata(&path).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // A slower process uses the existing key.
        assert_eq!(make(&path).unwrap(), made);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn ciphertext_by_another_key_is_an_invalid_argument() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let cipher = KeyFile::open(&one).unwrap().encrypt(b"key").unwrap();
        assert_eq!(
            KeyFile::open(&one).unwrap().decrypt(&cipher).unwrap(),
            b"key"
        );
        let other = KeyFile::open(&other).unwrap();
        for refused in [&cipher[..], &cipher[..5], b""] {
            let status = other.decrypt(refused).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
        }
    }
}
