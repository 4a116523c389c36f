//! The version of a server: `/version`.

use reqwest::Method;
use serde::Deserialize;

use crate::{Client, Error, client::Call};

impl Client {
    /// The level of the API that the server has, such as `2.15.0`. It is told only those
    /// who have proved who they are.
    ///
    /// # Errors
    /// As any request.
    pub async fn version(&self) -> Result<String, Error> {
        let answer: Version = self.ask(&Call::new(Method::GET, "/version")).await?;
        Ok(answer.version)
    }
}

#[derive(Deserialize)]
struct Version {
    version: String,
}
