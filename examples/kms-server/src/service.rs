//! The service `v1beta1.KeyManagementService` for any [`KeyKeeper`].

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use tonic::{
    Request, Response, Status, body::Body, codegen::BoxFuture, codegen::Service, codegen::http,
    server::Grpc, server::NamedService,
};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, VersionRequest,
    VersionResponse,
};

/// Encrypts and decrypts with a key.
pub trait KeyKeeper: Send + Sync + 'static {
    /// Returns the protocol version, and the name and version of the plugin.
    fn version(&self) -> VersionResponse;

    /// Encrypts bytes.
    fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, Status>;

    /// Decrypts bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if they were not encrypted with this key. Keywright depends on this status, because it calls every
    /// configured plugin.
    fn decrypt(&self, cipher: &[u8]) -> Result<Vec<u8>, Status>;
}

/// The service.
pub struct KeyManagementService<K> {
    keeper: Arc<K>,
}

impl<K> KeyManagementService<K> {
    /// Creates the service.
    pub fn new(keeper: K) -> Self {
        Self {
            keeper: Arc::new(keeper),
        }
    }
}

impl<K> Clone for KeyManagementService<K> {
    fn clone(&self) -> Self {
        Self {
            keeper: Arc::clone(&self.keeper),
        }
    }
}

impl<K: KeyKeeper> NamedService for KeyManagementService<K> {
    const NAME: &'static str = "v1beta1.KeyManagementService";
}

impl<K: KeyKeeper> Service<http::Request<Body>> for KeyManagementService<K> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let keeper = Arc::clone(&self.keeper);
        Box::pin(async move { Ok(respond(&keeper, request).await) })
    }
}

async fn respond<K: KeyKeeper>(
    keeper: &Arc<K>,
    request: http::Request<Body>,
) -> http::Response<Body> {
    match request.uri().path() {
        "/v1beta1.KeyManagementService/Version" => {
            let version = |_: Request<VersionRequest>| async {
                Ok::<_, Status>(Response::new(keeper.version()))
            };
            let mut grpc = Grpc::new(ProstCodec::default());
            grpc.unary(service_fn(version), request).await
        }
        "/v1beta1.KeyManagementService/Encrypt" => {
            let encrypt = |request: Request<EncryptRequest>| async {
                let cipher = keeper.encrypt(&request.into_inner().plain)?;
                Ok::<_, Status>(Response::new(EncryptResponse { cipher }))
            };
            let mut grpc = Grpc::new(ProstCodec::default());
            grpc.unary(service_fn(encrypt), request).await
        }
        "/v1beta1.KeyManagementService/Decrypt" => {
            let decrypt = |request: Request<DecryptRequest>| async {
                let plain = keeper.decrypt(&request.into_inner().cipher)?;
                Ok::<_, Status>(Response::new(DecryptResponse { plain }))
            };
            let mut grpc = Grpc::new(ProstCodec::default());
            grpc.unary(service_fn(decrypt), request).await
        }
        _ => Status::unimplemented("unknown method").into_http(),
    }
}
