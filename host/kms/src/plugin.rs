//! A connection to one plugin.

use std::{mem, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use keywright_core::ports::{KeyManagement, KeyManagementFailure};
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

use crate::messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, VersionRequest,
    VersionResponse,
};

/// The largest message that is taken from a plugin, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1_024;

/// How a plugin is reached.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    /// Its Unix socket.
    pub socket: PathBuf,
    /// The host that it is asked for (`:authority`), and whose certificate it must have.
    pub host: String,
    /// The authorities that its certificate must come from, PEM. Without them, the socket is used without TLS.
    pub trusted_authorities_pem: Option<Vec<u8>>,
    /// How long one call may take.
    pub deadline: Duration,
}

/// A key management plugin.
pub struct KeyManagementPlugin {
    client: Grpc<Channel>,
    settings: PluginSettings,
}

/// Why a plugin can't be used.
#[derive(Debug, thiserror::Error)]
enum PluginFailed {
    #[error("the authorities that are trusted for the key management plugin can't be read")]
    AuthoritiesMalformed,
    #[error("the key management plugin at {socket} failed to {doing}: {reason}")]
    CallFailed {
        socket: String,
        doing: &'static str,
        reason: String,
    },
    #[error("the key management plugin can't be reached as {host:?}, which is no host")]
    HostMalformed {
        host: String,
        source: tonic::transport::Error,
    },
    #[error(
        "the key management plugin at {socket} speaks version {version:?} of the protocol, and not {PROTOCOL_VERSION}"
    )]
    VersionDiffers { socket: String, version: String },
}

impl PluginSettings {
    /// How long a call may take, unless there is a reason for another time.
    pub const DEADLINE: Duration = Duration::from_secs(3);
}

impl KeyManagementPlugin {
    /// A plugin that is connected with when it is first asked for something.
    ///
    /// # Errors
    /// When the settings can't be meant.
    pub fn new(settings: PluginSettings) -> Result<Self, KeyManagementFailure> {
        let channel = channel(&settings).map_err(into_port)?;
        Ok(Self {
            client: Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
            settings,
        })
    }

    /// Connects with a plugin, and asks for its version. A plugin that does not answer is asked again a few times, as it may
    /// just be starting.
    ///
    /// # Errors
    /// When the settings can't be meant, the plugin does not answer, or speaks another version of the protocol.
    pub async fn connect(settings: PluginSettings) -> Result<Self, KeyManagementFailure> {
        let plugin = Self::new(settings)?;
        plugin.greet().await?;
        Ok(plugin)
    }

    /// Asks for its version.
    async fn greet(&self) -> Result<(), KeyManagementFailure> {
        let request = VersionRequest {
            version: PROTOCOL_VERSION.to_owned(),
        };
        let answer: VersionResponse = self.call(&VERSION, request).await?;
        let socket = self.settings.socket.display().to_string();
        if answer.version != PROTOCOL_VERSION {
            return Err(into_port(PluginFailed::VersionDiffers {
                socket,
                version: shortened(&answer.version),
            }));
        }
        tracing::info!(
            kms.socket = socket,
            kms.runtime_name = shortened(&answer.runtime_name),
            kms.runtime_version = shortened(&answer.runtime_version),
            "a key management plugin answers"
        );
        Ok(())
    }

    /// Calls a method, and again, a bounded number of times, while the plugin does not answer.
    async fn call<Q, A>(&self, method: &Method, request: Q) -> Result<A, KeyManagementFailure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let answer = self.attempt_repeatedly(method, request).await;
        answer.map_err(|status| self.failed(method, &status))
    }

    async fn attempt_repeatedly<Q, A>(&self, method: &Method, request: Q) -> Result<A, Status>
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
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("it did not answer in time")),
        }
    }

    fn failed(&self, method: &Method, status: &Status) -> KeyManagementFailure {
        into_port(PluginFailed::CallFailed {
            socket: self.settings.socket.display().to_string(),
            doing: method.doing,
            reason: reason(status),
        })
    }
}

#[async_trait]
impl KeyManagement for KeyManagementPlugin {
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementFailure> {
        let request = EncryptRequest {
            version: PROTOCOL_VERSION.to_owned(),
            plain: key.to_vec(),
        };
        let answer: EncryptResponse = self.call(&ENCRYPT, request).await?;
        Ok(answer.cipher)
    }

    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementFailure> {
        let request = DecryptRequest {
            version: PROTOCOL_VERSION.to_owned(),
            cipher: wrapped_key.to_vec(),
        };
        let answer: Result<DecryptResponse, _> = self.attempt_repeatedly(&DECRYPT, request).await;
        match answer {
            Ok(mut answer) => Ok(Some(Zeroizing::new(mem::take(&mut answer.plain)))),
            Err(status) if status.code() == Code::InvalidArgument => Ok(None),
            Err(status) => Err(self.failed(&DECRYPT, &status)),
        }
    }
}

/// A method of the service, and what it is asked for in words for an operator.
struct Method {
    path: &'static str,
    doing: &'static str,
}

const VERSION: Method = Method {
    path: "/v1beta1.KeyManagementService/Version",
    doing: "tell its version",
};

const ENCRYPT: Method = Method {
    path: "/v1beta1.KeyManagementService/Encrypt",
    doing: "encrypt a key",
};

const DECRYPT: Method = Method {
    path: "/v1beta1.KeyManagementService/Decrypt",
    doing: "decrypt a key",
};

/// A channel that connects when it is first used, and again when a connection is lost.
fn channel(settings: &PluginSettings) -> Result<Channel, PluginFailed> {
    let malformed = |source| PluginFailed::HostMalformed {
        host: settings.host.clone(),
        source,
    };
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

fn tls(authorities_pem: &[u8], host: &str) -> Result<ClientTlsConfig, PluginFailed> {
    let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities_pem).collect();
    if authorities.is_ok_and(|authorities| !authorities.is_empty()) {
        return Ok(ClientTlsConfig::new()
            .domain_name(host)
            .ca_certificate(Certificate::from_pem(authorities_pem)));
    }
    Err(PluginFailed::AuthoritiesMalformed)
}

/// Whether it may go better next time.
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

/// What a status says and why, in one line of bounded length: the plugin writes a part of it.
fn reason(status: &Status) -> String {
    let mut reason = format!("{}: {}", status.code(), shortened(status.message()));
    let mut source = std::error::Error::source(status);
    while let Some(cause) = source {
        let cause_text = shortened(&cause.to_string());
        if !reason.contains(&cause_text) {
            reason.push_str(": ");
            reason.push_str(&cause_text);
        }
        source = cause.source();
    }
    reason
}

fn shortened(text: &str) -> String {
    text.chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .take(TEXT_CHARACTERS_MAX)
        .collect()
}

fn into_port(failed: PluginFailed) -> KeyManagementFailure {
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(failed);
    boxed.into()
}

const PROTOCOL_VERSION: &str = "v1beta1";

/// How often a plugin is asked that does not answer, and how long to wait before the second time; before each further one it
/// is twice as long. Together they give a plugin that is just starting three seconds.
const ATTEMPTS_MAX: usize = 5;
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(200);

/// How much is repeated of what a plugin says.
const TEXT_CHARACTERS_MAX: usize = 200;
