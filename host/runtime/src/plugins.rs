//! The plugins that are in use, which can be replaced while requests go on.

use std::sync::{Arc, PoisonError, RwLock};

use keywright_core::{
    credential::CredentialType,
    ports::{Generator, Generators, Resolver, Resolvers},
};

use crate::{Runtime, measure::LaneOccupancy};

/// The plugins that are in use. Who has taken one of them keeps it, until all its calls have ended; who asks for one gets
/// what is in use at that moment.
pub struct Plugins(RwLock<Arc<Runtime>>);

impl Plugins {
    /// Begins with these.
    #[must_use]
    pub fn new(runtime: Runtime) -> Self {
        Self(RwLock::new(Arc::new(runtime)))
    }

    /// Uses others from now on, all of them at once. The threads of those before end when the last call there has.
    pub fn replace(&self, runtime: Runtime) {
        let runtime = Arc::new(runtime);
        // Only one whole set ever stands here, so a panic elsewhere can't have left half of one.
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, runtime);
        drop(current);
        drop(before);
    }

    /// How full the lanes of the plugins in use are at this moment.
    #[must_use]
    pub fn occupancy(&self) -> [LaneOccupancy; 2] {
        self.current().occupancy()
    }

    /// Tells the process's recorder which of the plugins in use make random values.
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
