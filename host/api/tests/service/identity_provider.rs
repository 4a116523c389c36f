//! Tokens checked by the keys that a provider publishes over TLS: here, another service's own provider.

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc};

use axum::http::StatusCode;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use keywright_api::authentication::{HttpsIdentityProvider, HttpsIdentityProviderSettings};
use rcgen::CertifiedKey;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

use crate::harness::{ISSUER, Service, good_claims, trusted_key};

/// Serves a service's development identity provider over TLS; returns its address and its certificate.
async fn serve() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pipeline = Service::new().pipeline();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, pipeline) = (acceptor.clone(), Arc::clone(&pipeline));
            tokio::spawn(async move {
                if let Ok(connection) = acceptor.accept(connection).await {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let pipeline = Arc::clone(&pipeline);
                        async move { Ok::<_, Infallible>(pipeline.respond(None, request).await) }
                    });
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                }
            });
        }
    });
    (format!("https://localhost:{port}/identity"), cert.pem())
}

fn service(url: String, trusted_certificates_pem: Option<String>) -> Service {
    let settings = HttpsIdentityProviderSettings {
        url,
        public_url: Some(ISSUER.to_owned()),
        trusted_certificates_pem,
        timeout: HttpsIdentityProviderSettings::TIMEOUT,
    };
    Service::with_identity_provider(HttpsIdentityProvider::new(&settings).unwrap())
}

#[tokio::test]
async fn published_keys_check_tokens() {
    let (url, certificate) = serve().await;
    let service = service(url, Some(certificate));
    let token = trusted_key().sign(&good_claims());
    for _ in 0..2 {
        let answer = service.get_as("/version", Some(&token)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    let forged = format!("{token}A");
    let answer = service.get_as("/version", Some(&forged)).await;
    assert_eq!(answer.error(), "invalid_token");
}

#[tokio::test]
async fn an_absent_or_untrusted_provider_leaves_tokens_unchecked() {
    let (url, _) = serve().await;
    let (_, other_certificate) = serve().await;
    for service in [
        service("https://localhost:1/identity".to_owned(), None),
        service(url, Some(other_certificate)),
    ] {
        let token = trusted_key().sign(&good_claims());
        let answer = service.get_as("/version", Some(&token)).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers["retry-after"], "5");
        assert!(!answer.error().contains("localhost"));
        let open = service.get_as("/info", None).await;
        assert_eq!(open.status, StatusCode::OK);
        let malformed = service.get_as("/version", Some("no token")).await;
        assert_eq!(malformed.error(), "invalid_token");
    }
}
