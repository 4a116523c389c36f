//! Client for key management plugins.
//!
//! A plugin is a program on the server's machine that encrypts and decrypts with its own key or with a key management service. It
//! serves gRPC on a Unix socket (`key_management.proto`). [`KeyManagementPlugin`] implements the domain's `KeyManagement` port:
//! the plugin wraps keys that the server creates, and unwraps them when a server starts. So no request waits for a plugin, and
//! stored records are still bound to their location.

mod messages;

use std::{mem, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use keywright_core::{
    ports::{KeyManagement, KeyManagementError},
    text::sanitized,
};
use prost::Message;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::{net::UnixStream, time};
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};
use tonic_prost::ProstCodec;
use tower::service_fn;
use zeroize::Zeroizing;

use messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, VersionRequest,
    VersionResponse,
};

/// The largest message from a plugin, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1_024;

/// How to connect to a plugin.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The host in requests (`:authority`) and in the plugin's certificate.
    pub host: String,
    /// The trusted CAs for the plugin's certificate, in PEM. Without them, the connection does not use TLS.
    pub trusted_authorities_pem: Option<Vec<u8>>,
    /// The deadline of one call.
    pub deadline: Duration,
}

/// A key management plugin.
pub struct KeyManagementPlugin {
    client: Grpc<Channel>,
    settings: PluginSettings,
}

impl PluginSettings {
    /// The default deadline of one call.
    pub const DEADLINE: Duration = Duration::from_secs(3);
}

impl KeyManagementPlugin {
    /// Creates a client that connects on its first call.
    pub fn new(settings: PluginSettings) -> Result<Self, KeyManagementError> {
        let channel = channel(&settings)?;
        Ok(Self {
            client: Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
            settings,
        })
    }

    /// Connects to a plugin and checks its protocol version. Retries a few times, because the plugin may be starting.
    pub async fn connect(settings: PluginSettings) -> Result<Self, KeyManagementError> {
        let plugin = Self::new(settings)?;
        plugin.check_version().await?;
        Ok(plugin)
    }

    async fn check_version(&self) -> Result<(), KeyManagementError> {
        let request = VersionRequest {
            version: PROTOCOL_VERSION.to_owned(),
        };
        let response = self.call(&VERSION, request).await;
        let response: VersionResponse =
            response.map_err(|status| self.failed(&VERSION, &status))?;
        let socket = self.settings.socket.display().to_string();
        if response.version != PROTOCOL_VERSION {
            let version = sanitized(&response.version);
            return Err(failure(format!(
                "the key management plugin at {socket} has protocol version {version:?}, expected {PROTOCOL_VERSION}"
            )));
        }
        tracing::info!(
            kms.socket = socket,
            kms.runtime_name = sanitized(&response.runtime_name),
            kms.runtime_version = sanitized(&response.runtime_version),
            "connected to the key management plugin"
        );
        Ok(())
    }

    /// Calls a method. Retries temporary failures up to [`ATTEMPTS_MAX`] attempts.
    async fn call<Q, A>(&self, method: &Method, request: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut pause = RETRY_PAUSE_FIRST;
        for _ in 1..ATTEMPTS_MAX {
            match self.attempt(method, request.clone()).await {
                Err(status) if is_temporary(&status) => {
                    time::sleep(pause).await;
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
        self.attempt(method, request).await
    }

    async fn attempt<Q, A>(&self, method: &Method, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut client = self.client.clone();
        let mut request = Request::new(message);
        request.set_timeout(self.settings.deadline);
        let calling = async {
            let connected = client.ready().await;
            connected.map_err(|cause| Status::from_error(cause.into()))?;
            let path = PathAndQuery::from_static(method.path);
            client.unary(request, path, ProstCodec::default()).await
        };
        match time::timeout(self.settings.deadline, calling).await {
            Ok(response) => Ok(response?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("no response in time")),
        }
    }

    fn failed(&self, method: &Method, status: &Status) -> KeyManagementError {
        let socket = self.settings.socket.display();
        failure(match self.settings.socket.try_exists() {
            Ok(false) => {
                format!("there is no socket at {socket}; start the key management plugin")
            }
            _ => format!(
                "the key management plugin at {socket} could not {}: {}",
                method.action,
                reason(status)
            ),
        })
    }
}

#[async_trait]
impl KeyManagement for KeyManagementPlugin {
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementError> {
        let request = EncryptRequest {
            version: PROTOCOL_VERSION.to_owned(),
            plain: key.to_vec(),
        };
        let response = self.call(&ENCRYPT, request).await;
        let response: EncryptResponse =
            response.map_err(|status| self.failed(&ENCRYPT, &status))?;
        Ok(response.cipher)
    }

    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementError> {
        let request = DecryptRequest {
            version: PROTOCOL_VERSION.to_owned(),
            cipher: wrapped_key.to_vec(),
        };
        match self.call::<_, DecryptResponse>(&DECRYPT, request).await {
            Ok(mut response) => Ok(Some(Zeroizing::new(mem::take(&mut response.plain)))),
            Err(status) if status.code() == Code::InvalidArgument => Ok(None),
            Err(status) => Err(self.failed(&DECRYPT, &status)),
        }
    }
}

/// A method of the service, with its description in error messages.
struct Method {
    path: &'static str,
    action: &'static str,
}

const VERSION: Method = Method {
    path: "/v1beta1.KeyManagementService/Version",
    action: "report its version",
};

const ENCRYPT: Method = Method {
    path: "/v1beta1.KeyManagementService/Encrypt",
    action: "encrypt a key",
};

const DECRYPT: Method = Method {
    path: "/v1beta1.KeyManagementService/Decrypt",
    action: "decrypt a key",
};

/// Creates a channel that connects on first use, and reconnects if the connection is lost.
fn channel(settings: &PluginSettings) -> Result<Channel, KeyManagementError> {
    let malformed = |_| failure(format!("host: {:?} is not a host name", settings.host));
    let scheme = match &settings.trusted_authorities_pem {
        Some(_) => "https",
        None => "http",
    };
    let uri = format!("{scheme}://{}", settings.host);
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(malformed)?
        .connect_timeout(settings.deadline);
    if let Some(pem) = &settings.trusted_authorities_pem {
        endpoint = endpoint
            .tls_config(tls(pem, &settings.host)?)
            .map_err(malformed)?;
    }
    let socket: Arc<PathBuf> = Arc::new(settings.socket.clone());
    Ok(endpoint.connect_with_connector_lazy(service_fn(move |_| {
        let socket = Arc::clone(&socket);
        async move {
            UnixStream::connect(socket.as_path())
                .await
                .map(TokioIo::new)
        }
    })))
}

fn tls(authorities_pem: &[u8], host: &str) -> Result<ClientTlsConfig, KeyManagementError> {
    let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities_pem).collect();
    if authorities.is_ok_and(|authorities| !authorities.is_empty()) {
        return Ok(ClientTlsConfig::new()
            .domain_name(host)
            .ca_certificate(Certificate::from_pem(authorities_pem)));
    }
    Err(failure(
        "trusted_authorities: the file must contain at least one PEM certificate".to_owned(),
    ))
}

/// Returns whether a retry may succeed.
fn is_temporary(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Aborted
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Unavailable
            | Code::Unknown
    )
}

/// Formats a status and its causes on one line. Truncates each part, because the plugin controls some of them.
fn reason(status: &Status) -> String {
    let mut reason = format!("{}: {}", status.code(), sanitized(status.message()));
    let mut source = std::error::Error::source(status);
    while let Some(cause) = source {
        let cause_text = sanitized(&cause.to_string());
        if !reason.contains(&cause_text) {
            reason.push_str(": ");
            reason.push_str(&cause_text);
        }
        source = cause.source();
    }
    reason
}

fn failure(text: String) -> KeyManagementError {
    KeyManagementError(text.into())
}

const PROTOCOL_VERSION: &str = "v1beta1";

/// The maximum number of attempts for a call. With [`RETRY_PAUSE_FIRST`], a starting plugin has three seconds.
const ATTEMPTS_MAX: usize = 5;
/// The pause before the first retry. Each further pause is twice as long.
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(200);
