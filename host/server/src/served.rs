//! An assembled server that is not listening yet.

use std::sync::Arc;

use keywright_api::{Pipeline, Router, audit::AuditTrail};
use keywright_core::ports::KeyRotationRepository;
use keywright_storage::{Database, SqlKeyRotationRepository};
use uuid::Uuid;

use crate::{background::Background, development::Announcement, started::StartRefused, tls::Tls};

/// An assembled server.
pub(crate) struct Served {
    /// The TLS configuration.
    pub(crate) tls: Arc<Tls>,
    /// Responds to requests.
    pub(crate) pipeline: Arc<Pipeline>,
    /// Responds to requests at the management address, if configured.
    pub(crate) management: Option<Router>,
    /// Printed once the server is listening.
    pub(crate) announcement: Option<Announcement>,
    /// The audit trail, if enabled; closed at shutdown.
    pub(crate) audit: Option<Arc<AuditTrail>>,
    /// The active key, recorded at start-up.
    pub(crate) activation: Activation,
    /// Background tasks, stopped before the audit trail and the database are closed.
    pub(crate) background: Background,
    /// The database, closed at shutdown.
    pub(crate) database: Database,
}

/// The active key, recorded at start-up.
pub(crate) struct Activation {
    /// The repository that records the key.
    pub(crate) repository: SqlKeyRotationRepository,
    /// The id of this server's active key.
    pub(crate) key_id: Uuid,
}

impl Served {
    /// Records the active key of this start, and starts the background tasks. Any step that could make the start fail must
    /// come before: a failed start must not change the key to which other servers rotate.
    ///
    /// # Errors
    /// If the database can't record the key.
    pub(crate) async fn begin(&mut self) -> Result<(), StartRefused> {
        let Activation { repository, key_id } = &self.activation;
        repository.activate(*key_id).await.map_err(|cause| {
            StartRefused::while_doing("writing down which encryption key is active", cause)
        })?;
        self.background.start();
        Ok(())
    }
}
