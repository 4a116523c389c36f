//! A server that is put together, and not listening yet.

use std::sync::Arc;

use keywright_api::{Pipeline, Router, audit::AuditTrail};
use keywright_core::ports::KeyRotationRepository;
use keywright_storage::{Database, SqlKeyRotationRepository};
use uuid::Uuid;

use crate::{background::Background, development::Announcement, started::StartRefused, tls::Tls};

/// What the listener serves.
pub(crate) struct Served {
    /// TLS.
    pub(crate) tls: Arc<Tls>,
    /// What answers requests.
    pub(crate) pipeline: Arc<Pipeline>,
    /// What answers on the management address, where there is one.
    pub(crate) management: Option<Router>,
    /// What is said once the listener is there.
    pub(crate) announcement: Option<Announcement>,
    /// The audit trail, where there is one: to be closed at the end.
    pub(crate) audit: Option<Arc<AuditTrail>>,
    /// The key that a start is with.
    pub(crate) activation: Activation,
    /// What is done beside requests: to be stopped before the audit trail and the database are closed.
    pub(crate) background: Background,
    /// The database, to be closed at the end.
    pub(crate) database: Database,
}

/// The key that a start is with, to be written down.
pub(crate) struct Activation {
    /// Where it is written down.
    pub(crate) repository: SqlKeyRotationRepository,
    /// The key that is active here.
    pub(crate) key_id: Uuid,
}

impl Served {
    /// Writes down with which active key a server starts, and begins what is done beside requests. Whatever could keep the
    /// server from starting comes before: a start that fails must not turn the direction in which others rotate.
    ///
    /// # Errors
    /// When the database can't answer.
    pub(crate) async fn begin(&mut self) -> Result<(), StartRefused> {
        let Activation { repository, key_id } = &self.activation;
        repository.activate(*key_id).await.map_err(|cause| {
            StartRefused::while_doing("writing down which encryption key is active", cause)
        })?;
        self.background.begin();
        Ok(())
    }
}
