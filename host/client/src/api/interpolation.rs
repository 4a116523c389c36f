//! Interpolation: `/api/v1/interpolate`.

use reqwest::Method;

use crate::{Client, Error, SecretJson, client::Call};

impl Client {
    /// Substitutes the credential references in a document of service bindings. The rest of the document, and the order of its
    /// fields, is unchanged.
    ///
    /// # Errors
    /// When the document is not JSON; when a referenced credential does not exist, is not of type json, or may not be read; and as
    /// any request.
    pub async fn interpolate(&self, document: &str) -> Result<SecretJson, Error> {
        let document = keywright_json::raw(document);
        let document = document.map_err(|cause| Error::RequestMalformed(cause.into()))?;
        let call = Call::new(Method::POST, "/api/v1/interpolate");
        self.execute(&call.body(&document)?).await
    }
}
