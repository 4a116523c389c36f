//! The version of a server: `/version`.

use reqwest::Method;
use serde::Deserialize;

use crate::{Client, Error, client::Call};

impl Client {
    /// Returns the server's level of the API, such as `2.15.0`. Requires authentication.
    ///
    /// # Errors
    /// As any request.
    pub async fn version(&self) -> Result<String, Error> {
        let response: Version = self.execute(&Call::new(Method::GET, "/version")).await?;
        Ok(response.version)
    }
}

#[derive(Deserialize)]
struct Version {
    version: String,
}
