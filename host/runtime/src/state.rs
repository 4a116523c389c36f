//! The states of the loaded plugins: their calls, their faults and their circuits.

use std::{sync::Arc, time::Instant};

use keywright_core::{
    credential::{CredentialType, PluginIdentity},
    permission::Actor,
    ports::PluginState,
};

use crate::{breaker::Breaker, call::Plugin, measure::CallMeasurements};

/// A loaded plugin whose state can be read.
pub(crate) struct ObservedPlugin {
    /// The type that it generates; `None` for the resolver.
    pub(crate) credential_type: Option<CredentialType>,
    /// The random bits in its values that the entropy test confirmed.
    pub(crate) entropy_bits_min: Option<u32>,
    identity: PluginIdentity,
    measurements: Arc<CallMeasurements>,
    breaker: Arc<Breaker>,
}

impl ObservedPlugin {
    /// Observes a generator of this type, or a resolver.
    pub(crate) fn new(
        plugin: &Plugin,
        breaker: &Arc<Breaker>,
        credential_type: Option<CredentialType>,
        entropy_bits_min: Option<u32>,
    ) -> Self {
        Self {
            credential_type,
            entropy_bits_min,
            identity: plugin.identity.clone(),
            measurements: Arc::clone(&plugin.measurements),
            breaker: Arc::clone(breaker),
        }
    }

    pub(crate) fn state(&self, actor: &Actor) -> PluginState {
        let (calls, faults) = self.measurements.counts();
        PluginState {
            identity: self.identity.clone(),
            credential_type: self.credential_type.clone(),
            entropy_bits_min: self.entropy_bits_min,
            calls,
            faults,
            open_circuit: self.breaker.open_circuit(actor, Instant::now()),
        }
    }
}
