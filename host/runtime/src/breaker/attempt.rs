//! A call that is made only while its circuit is closed.

use std::{sync::Arc, time::Instant};

use keywright_core::{
    permission::Actor,
    ports::{PluginFailure, PluginFault},
};

use super::{Breaker, Call, Opened};
use crate::{
    call::Plugin,
    measure::{self, measured},
};

/// A call of a plugin's guest. Its outcome counts whether or not anything still waits for it, so that a caller who leaves
/// does not escape the count.
pub(crate) struct Attempt {
    breaker: Arc<Breaker>,
    call: Call,
}

impl Attempt {
    /// A call of a function with these inputs, which is refused if the circuit is open.
    ///
    /// # Errors
    /// [`PluginFailure::Resting`]. It is counted here.
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

    /// Makes the call and measures it, unless the circuit has opened while it waited.
    ///
    /// # Errors
    /// [`PluginFailure::Resting`], or those of the work.
    pub(crate) fn make<T>(
        &self,
        plugin: &Plugin,
        work: impl FnOnce() -> Result<T, PluginFailure>,
    ) -> Result<T, PluginFailure> {
        self.check(plugin)?;
        let outcome = measured(&plugin.identity.name, self.call.function, work);
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
                "the plugin's component failed too often in a row for several actors: its calls are refused for a while"
            ),
            Some(Opened::ForActor) => tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                actor = self.call.actor.as_ref().map(Actor::as_str),
                rest_seconds = seconds,
                "the plugin's component failed too often in a row for one actor: this actor's calls are refused for a while"
            ),
            None => {}
        }
    }
}
