//! Serves a Unix socket, and encrypts with a key from a file.

use std::{
    error::Error,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    process,
};

use clap::Parser;
use kms_server::{KeyFile, KeyManagementService};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// A key management plugin for Keywright that keeps its key in a file.
#[derive(Parser)]
struct Arguments {
    /// Unix socket to listen on; an existing socket is replaced
    #[arg(long)]
    socket: PathBuf,
    /// File with the key, 32 bytes; created if it does not exist
    #[arg(long)]
    key: PathBuf,
    /// Certificate chain for TLS, in PEM; without it, TLS is disabled
    #[arg(long, requires = "private_key")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, requires = "certificate")]
    private_key: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let key = KeyFile::open(&arguments.key)?;
    let mut server = Server::builder();
    if let (Some(certificate), Some(private_key)) = (&arguments.certificate, &arguments.private_key)
    {
        let identity = Identity::from_pem(fs::read(certificate)?, fs::read(private_key)?);
        server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
    }
    let listener = listen(&arguments.socket)?;
    println!("listening on {}", arguments.socket.display());
    server
        .add_service(KeyManagementService::new(key))
        .serve_with_incoming(UnixListenerStream::new(listener))
        .await?;
    Ok(())
}

/// Listens on a socket that only its owner can connect to. The socket is created in a private folder, and moved to its path after its
/// permissions are set. Replaces an existing socket, but no other file.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(socket) {
        Ok(existing) if !existing.file_type().is_socket() => {
            let what = format!("{} exists and is not a socket", socket.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => return Err(failure),
        _ => {}
    }
    let folder = socket.with_file_name(format!(".{}", process::id()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let listening = listen_in(&folder, socket);
    fs::remove_dir_all(&folder)?;
    listening
}

fn listen_in(folder: &Path, socket: &Path) -> io::Result<UnixListener> {
    let private = folder.join("s");
    let listener = UnixListener::bind(&private)?;
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600))?;
    fs::rename(&private, socket)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_is_private_and_replaces_an_existing_one() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("kms.sock");
        for _ in 0..2 {
            drop(listen(&socket).unwrap());
            let metadata = fs::symlink_metadata(&socket).unwrap();
            assert!(metadata.file_type().is_socket());
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[tokio::test]
    async fn other_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kms.sock");
        fs::write(&file, "precious").unwrap();
        let refused = listen(&file).unwrap_err();
        assert!(refused.to_string().ends_with("is not a socket"));
        assert_eq!(fs::read(&file).unwrap(), b"precious");
    }
}
