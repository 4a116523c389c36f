//! The active plugins, which can be replaced without interrupting requests.

use std::sync::{Arc, PoisonError, RwLock};

use keywright_core::{
    credential::CredentialType,
    ports::{Generator, Generators, Resolver, Resolvers},
};

use crate::{Runtime, measure::LaneOccupancy};

/// The active plugins. Each lookup returns the currently active plugin, which stays usable by its holder after a replacement.
pub struct Plugins(RwLock<Arc<Runtime>>);

impl Plugins {
    /// Creates a set with these plugins.
    #[must_use]
    pub fn new(runtime: Runtime) -> Self {
        Self(RwLock::new(Arc::new(runtime)))
    }

    /// Replaces all plugins atomically. The threads of the previous plugins end after their last call.
    pub fn replace(&self, runtime: Runtime) {
        let runtime = Arc::new(runtime);
        // The value is always a complete set, so a panic can't leave an inconsistent state.
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, runtime);
        drop(current);
        drop(before);
    }

    /// Returns the current occupancy of the active plugins' lanes.
    #[must_use]
    pub fn occupancy(&self) -> [LaneOccupancy; 2] {
        self.current().occupancy()
    }

    /// Records the metric for active generators that passed the entropy test.
    pub fn record_conformance(&self) {
        self.current().record_conformance();
    }

    fn current(&self) -> Arc<Runtime> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Generators for Plugins {
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        self.current().generators().generator(credential_type)
    }

    fn credential_types(&self) -> Vec<CredentialType> {
        self.current().generators().credential_types()
    }
}

impl Resolvers for Plugins {
    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        self.current().resolver()
    }
}
