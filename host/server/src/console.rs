//! Connects the console to the API's authentication, and to the identity provider.

use std::sync::Arc;

use async_trait::async_trait;
use hyper::{
    StatusCode,
    http::{Request, Response as HttpResponse, request::Parts},
};
use keywright_api::{
    InterfaceAccess, InterfaceRoute, RefusedRequest, Response, UserInterface,
    authentication::{HttpsIdentityProvider, TokenVerifier},
    error_chain, status_and_message,
};
use keywright_console::{
    Access, Console, ConsolePorts, ConsoleRoute, Endpoints, IdentityProvider, ProviderError,
};
use keywright_core::{
    Secret, credential::Credentials, encryption_key::EncryptionKeys, permission::Actor,
    permission_management::Permissions, ports::PluginStates,
};
use keywright_runtime::Plugins;

use crate::{config::Config, started::StartupError};

pub(crate) fn console(
    config: &Config,
    credentials: &Arc<Credentials>,
    permissions: &Permissions,
    encryption_keys: &EncryptionKeys,
    plugins: &Arc<Plugins>,
    tokens: Option<&Arc<TokenVerifier>>,
) -> Result<Option<Arc<dyn UserInterface>>, StartupError> {
    let Some(console) = &config.console else {
        return Ok(None);
    };
    let settings = console.settings(&config.authentication)?;
    let provider = Provider {
        provider: config.authentication.login_provider()?,
        tokens: tokens.map(Arc::clone).ok_or_else(|| {
            StartupError::new("the console requires access tokens: set authentication.url")
        })?,
    };
    let console = Console::new(
        settings,
        ConsolePorts {
            credentials: Arc::clone(credentials),
            permissions: permissions.clone(),
            encryption_keys: encryption_keys.clone(),
            plugins: Arc::clone(plugins) as Arc<dyn PluginStates>,
            provider: Arc::new(provider),
            clock: Arc::clone(&credentials.store.clock),
            status_and_message,
        },
    );
    Ok(Some(Arc::new(MountedConsole(console))))
}

/// The console as a user interface of the API's pipeline.
struct MountedConsole(Console);

#[async_trait]
impl UserInterface for MountedConsole {
    fn routes(&self) -> Vec<InterfaceRoute> {
        let routes = self.0.routes().into_iter();
        routes.map(mounted).collect()
    }

    async fn access_token(&self, request: &mut Parts) -> Result<Secret, Response> {
        self.0.access_token(request).await
    }

    fn refused(&self, request: &RefusedRequest, status: StatusCode, message: &str) -> Response {
        let RefusedRequest { method, target } = request;
        self.0.refused(method, target, status, message)
    }
}

fn mounted(route: ConsoleRoute) -> InterfaceRoute {
    InterfaceRoute {
        method: route.method,
        path: route.path,
        access: match route.access {
            Access::Open => InterfaceAccess::Open,
            Access::Session => InterfaceAccess::Session,
            Access::ReadingSession => InterfaceAccess::ReadingSession,
        },
        action: route.action,
        handle: route.handle,
    }
}

/// The configured identity provider, and the verifier of its tokens.
struct Provider {
    provider: HttpsIdentityProvider,
    tokens: Arc<TokenVerifier>,
}

#[async_trait]
impl IdentityProvider for Provider {
    async fn endpoints(&self) -> Result<Endpoints, ProviderError> {
        let endpoints = self.provider.login_endpoints().await;
        let endpoints = endpoints.map_err(|error| ProviderError(error_chain(&error)))?;
        Ok(Endpoints {
            authorization: endpoints.authorization_endpoint,
            token: endpoints.token_endpoint,
            logout: endpoints
                .end_session_endpoint
                .filter(|url| url.starts_with("https://")),
        })
    }

    async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<HttpResponse<Vec<u8>>, ProviderError> {
        let (parts, form) = request.into_parts();
        let url = parts.uri.to_string();
        let sent = self.provider.post(&url, parts.headers, form).await;
        let (status, body) = sent.map_err(|error| ProviderError(error_chain(&error)))?;
        let mut response = HttpResponse::new(body);
        *response.status_mut() = status;
        Ok(response)
    }

    async fn actor(&self, access_token: &Secret) -> Result<Actor, ProviderError> {
        let verified = self.tokens.actor(access_token).await;
        verified.map_err(|reason| ProviderError(format!("the access token was rejected: {reason}")))
    }

    async fn check_id_token(
        &self,
        id_token: &Secret,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), ProviderError> {
        let checked = self.tokens.check_id_token(id_token, client_id, nonce).await;
        checked.map_err(|reason| ProviderError(format!("the ID token was rejected: {reason}")))
    }
}
