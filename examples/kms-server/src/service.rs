//! The service `v1beta1.KeyManagementService` around whatever keeps the key.

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

/// What keeps a key and works with it.
pub trait KeyKeeper: Send + Sync + 'static {
    /// The version of the protocol, and the name and the version of the plugin.
    fn version(&self) -> VersionResponse;

    /// Encrypts bytes.
    ///
    /// # Errors
    /// When that is not possible.
    fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, Status>;

    /// Decrypts bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when they were not encrypted with this key, which Keywright relies on: it asks every plugin that
    /// is configured.
    fn decrypt(&self, cipher: &[u8]) -> Result<Vec<u8>, Status>;
}

/// The service.
pub struct KeyManagementService<K> {
    keeper: Arc<K>,
}

impl<K> KeyManagementService<K> {
    /// Serves what a keeper does.
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
        Box::pin(async move { Ok(answer(&keeper, request).await) })
    }
}

async fn answer<K: KeyKeeper>(
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
        _ => Status::unimplemented("there is no such method").into_http(),
    }
}
