//! Calls behind the circuit breaker.

use std::{sync::Arc, time::Instant};

use keywright_core::{
    permission::Actor,
    ports::{PluginFailure, PluginFault},
};

use super::{Breaker, Call, Opened};
use crate::{call::Plugin, measure};

/// A call of a plugin's guest. Its outcome counts even if the caller disconnects, so that disconnecting does not hide faults.
pub(crate) struct Attempt {
    breaker: Arc<Breaker>,
    call: Call,
}

impl Attempt {
    /// Prepares a call of a function with these inputs.
    ///
    /// # Errors
    /// [`PluginFailure::Resting`] if the circuit is open. This records the metric.
    pub(crate) fn begin(
        plugin: &Plugin,
        breaker: &Arc<Breaker>,
        actor: Option<&Actor>,
        function: &'static str,
        inputs: &[&str],
    ) -> Result<Self, PluginFailure> {
        let attempt = Self {
            breaker: Arc::clone(breaker),
            call: breaker.call(actor, function, inputs),
        };
        attempt.check(plugin)?;
        Ok(attempt)
    }

    /// Returns the called function.
    pub(crate) fn function(&self) -> &'static str {
        self.call.function
    }

    /// Makes the call and measures it.
    ///
    /// # Errors
    /// [`PluginFailure::Resting`] if the circuit has opened in the meantime, or the error of `work`.
    pub(crate) fn make<T>(
        &self,
        plugin: &Plugin,
        work: impl FnOnce() -> Result<T, PluginFailure>,
    ) -> Result<T, PluginFailure> {
        self.check(plugin)?;
        let name = &plugin.identity.name;
        let outcome = plugin.measurements.measured(name, self.call.function, work);
        match &outcome {
            Err(PluginFailure::Faulted {
                fault: PluginFault::InputTooLarge | PluginFault::NotInstantiated,
                ..
            }) => {}
            Err(PluginFailure::Faulted { fault, .. }) => self.faulted(plugin, *fault),
            _ => self.breaker.returned(&self.call),
        }
        outcome
    }

    fn check(&self, plugin: &Plugin) -> Result<(), PluginFailure> {
        match self.breaker.open_for(&self.call, Instant::now()) {
            Some(retry_after) => {
                measure::resting(&plugin.identity.name, self.call.function);
                Err(PluginFailure::Resting {
                    plugin: plugin.identity.name.clone(),
                    retry_after,
                })
            }
            None => Ok(()),
        }
    }

    fn faulted(&self, plugin: &Plugin, fault: PluginFault) {
        let seconds = self.breaker.open_time().as_secs();
        match self.breaker.faulted(&self.call, fault, Instant::now()) {
            Some(Opened::ForAll) => tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                rest_seconds = seconds,
                "the plugin's component kept failing for several actors: temporarily disabled it"
            ),
            Some(Opened::ForActor) => tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                actor = self.call.actor.as_ref().map(Actor::as_str),
                rest_seconds = seconds,
                "the plugin's component kept failing for one actor: temporarily disabled it for this actor"
            ),
            None => {}
        }
    }
}
