//! Serves the key in a file on a Unix socket.

use std::{
    error::Error,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::Parser;
use kms_server::{KeyFile, KeyManagementService};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// A key management plugin for Keywright that keeps its key in a file.
#[derive(Parser)]
struct Arguments {
    /// The Unix socket to listen on. One that is left over is replaced.
    #[arg(long)]
    socket: PathBuf,
    /// The file with the key, 32 bytes; made when it is absent.
    #[arg(long)]
    key: PathBuf,
    /// The certificate chain to show, PEM. Without it there is no TLS.
    #[arg(long, requires = "private_key")]
    certificate: Option<PathBuf>,
    /// The certificate's private key, PEM.
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

fn listen(socket: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(socket) {
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => return Err(failure),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
