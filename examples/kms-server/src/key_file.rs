//! A key in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use tonic::Status;

use crate::{messages::VersionResponse, service::KeyKeeper};

/// Encrypts with AES-256-GCM under the key in a file: a nonce of 12 random bytes, the ciphertext, and its tag.
pub struct KeyFile {
    key: RandomizedNonceKey,
}

impl KeyFile {
    /// Opens a file of 32 bytes. One that is absent is made, readable by its owner alone, with random bytes.
    ///
    /// # Errors
    /// When the file can't be read or made, or is not 32 bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => make(path)?,
            read => read?,
        };
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} is not {KEY_BYTES} bytes", path.display()),
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
        let refused = || Status::invalid_argument("it was not encrypted with this key");
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

/// Makes the file beside its place first, so that it is there as a whole or not at all, whatever becomes of the process or the
/// machine. When another process was faster, its key is the one.
fn make(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY_BYTES];
    rand::fill(&mut key).map_err(|_| io::Error::other("there is no randomness"))?;
    let beside = path.with_added_extension(format!("{}.new", process::id()));
    let written = write(&beside, &key).and_then(|()| fs::hard_link(&beside, path));
    let removed = fs::remove_file(&beside);
    match written {
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => return fs::read(path),
        written => written?,
    }
    removed?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(key)
}

fn write(path: &Path, key: &[u8]) -> io::Result<()> {
    // One that is left over was a process's of the same id that has ended.
    match fs::remove_file(path) {
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => return Err(failure),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(key)?;
    file.sync_all()
}

const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_that_is_made_is_its_owners_alone_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = make(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), made);
        assert_eq!(made.len(), KEY_BYTES);
        let permissions = fs::metadata(&path).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // Another process that was slower takes it.
        assert_eq!(make(&path).unwrap(), made);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_one_key_encrypts_another_one_refuses_as_an_invalid_argument() {
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
