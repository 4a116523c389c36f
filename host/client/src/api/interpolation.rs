//! Interpolation: `/api/v1/interpolate`.

use reqwest::Method;

use crate::{Client, Error, SecretJson, client::Call};

impl Client {
    /// Fills the references in a document: service bindings in which `credentials` says which credential belongs there.
    /// The rest of the document, and the order of its members, stays as it is.
    ///
    /// # Errors
    /// When the document is not JSON; when a credential that it refers to is not there, is of another type than json, or
    /// may not be read; and as any request.
    pub async fn interpolate(&self, document: &str) -> Result<SecretJson, Error> {
        let document = keywright_json::raw(document);
        let document = document.map_err(|cause| Error::RequestMalformed(cause.into()))?;
        let call = Call::new(Method::POST, "/api/v1/interpolate");
        self.ask(&call.body(&document)?).await
    }
}
