//! The host's state for one call of a guest, the interfaces for guests (random bytes, signing by issuers, and notes), and the generated
//! bindings of the interfaces in `wit/`.
//!
//! The host uses only the types of the bindings, and the functions of `wasi:random`. The names of all other functions depend on the
//! version that a component is built for (`interfaces.rs`).

use std::sync::Arc;

use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::CertificateIssuer, text::for_log};
use wasmtime::{
    ResourceLimiter, StoreContextMut,
    component::{Linker, Resource, ResourceType, WasmStr},
};

use crate::engine::{MEMORIES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

wasmtime::component::bindgen!({
    path: [
        "../../wit/deps/wasi-random",
        "../../wit/signing",
        "../../wit/generator",
        "../../wit/interpolation",
    ],
    inline: "
        package keywright:host;

        world plugin {
            import wasi:random/random@0.2.0;
            import keywright:signing/issuer@0.2.0;
            export keywright:generator/descriptor@0.2.0;
            export keywright:generator/generator@0.2.0;
            export keywright:generator/issued-generator@0.2.0;
            export keywright:generator/derived-generator@0.2.0;
            export keywright:generator/normalizer@0.2.0;
            export keywright:generator/acceptor@0.2.0;
            export keywright:generator/recoverer@0.2.0;
            export keywright:generator/expiry@0.2.0;
            export keywright:interpolation/resolver@0.2.0;
            export keywright:interpolation/any-type-resolver@0.2.0;
        }
    ",
    world: "keywright:host/plugin",
    imports: { default: trappable },
    with: { "keywright:signing/issuer.issuer": crate::host::PassedIssuer },
});

use self::{keywright::signing::issuer::SigningError, wasi::random::random::Host};

/// The handle of the call's issuer.
pub(crate) const ISSUER_HANDLE: u32 = 1;

/// The type of handles to the issuer that a guest borrows for one call.
#[expect(
    unreachable_pub,
    reason = "the generated bindings export it again, within the crate"
)]
pub struct PassedIssuer;

impl PassedIssuer {
    /// Returns the handle that the guest borrows.
    pub(crate) fn handle() -> Resource<Self> {
        Resource::new_borrow(ISSUER_HANDLE)
    }
}

/// The maximum number of random bytes per call of `wasi:random/random`.
const RANDOM_BYTES_MAX: u64 = 1024 * 1024;
/// The maximum size of a certificate body to be signed, in bytes.
pub(crate) const TBS_CERTIFICATE_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of notes shown per call.
const NOTES_MAX: u32 = 32;

/// The host's state for one call.
pub(crate) struct CallState {
    pub(crate) random: Arc<dyn RandomSource>,
    /// Whether the guest has requested random bytes.
    pub(crate) has_drawn: bool,
    /// The issuer passed to the guest for this call.
    pub(crate) issuer: Option<Arc<dyn CertificateIssuer>>,
    /// The notes of this call.
    pub(crate) notes: Notes,
    /// The limiter of its memories and tables.
    pub(crate) limiter: MemoryLimiter,
}

/// Enforces the guest's memory limits and records whether it exceeded them.
pub(crate) struct MemoryLimiter {
    memory_bytes_max: u64,
    /// The total size of all memories. Memories never shrink.
    pub(crate) memory_bytes: u64,
    pub(crate) is_exceeded: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(memory_bytes_max: u64) -> Self {
        Self {
            memory_bytes_max,
            memory_bytes: 0,
            is_exceeded: false,
        }
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // The engine would refuse it: the memory's own maximum is smaller.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let more = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        let all = self.memory_bytes.saturating_add(more);
        let fits = all <= self.memory_bytes_max;
        if fits {
            self.memory_bytes = all;
        }
        self.is_exceeded |= !fits;
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = desired <= TABLE_ELEMENTS_MAX;
        self.is_exceeded |= !fits;
        Ok(fits)
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }
}

/// The reason why the host trapped a guest during a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    #[error("the guest used an issuer that it did not receive")]
    IssuerNotPassed,
    #[error("the guest requested more than {RANDOM_BYTES_MAX} random bytes in one call")]
    RandomBytesExceeded,
    #[error(transparent)]
    RandomUnavailable(#[from] RandomError),
}

/// A source of random bytes for guests.
pub trait RandomSource: Send + Sync {
    /// Fills a buffer.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError>;
}

/// The random generator of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        getrandom::fill(bytes).map_err(|_| RandomError)
    }
}

/// The error of a [`RandomSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the random generator failed")]
pub struct RandomError;

/// `wasi:random/random`: the only source of randomness of guests.
impl Host for CallState {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        let length = usize::try_from(len)
            .ok()
            .filter(|_| len <= RANDOM_BYTES_MAX)
            .ok_or(HostError::RandomBytesExceeded)?;
        let mut bytes = vec![0; length];
        self.draw(&mut bytes)?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        let mut bytes = [0; 8];
        self.draw(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Returns the issuer of a test CA for one call with these canonical parameters at this time, or `None` for a call without an
/// issuer.
///
/// The CA must be the same for all calls and sign deterministically, because the entropy test compares values.
pub type TestIssuers =
    Arc<dyn Fn(&Parameters, DateTime<Utc>) -> Option<Arc<dyn CertificateIssuer>> + Send + Sync>;

/// Adds the interface `keywright:signing/issuer` under this name. Its resource is a CA, which a guest borrows for one call.
///
/// The interface is the same in all versions, so it is defined once and added under the name of each version.
pub(crate) fn add_issuer_to_linker(
    linker: &mut Linker<CallState>,
    name: &str,
) -> wasmtime::Result<()> {
    let mut interface = linker.instance(name)?;
    // Guests only borrow handles, so there is nothing to drop.
    interface.resource(
        "issuer",
        ResourceType::host::<PassedIssuer>(),
        |_, _| Ok(()),
    )?;
    let mut add_getter = |method: &str, read: fn(&dyn CertificateIssuer) -> &[u8]| {
        interface.func_wrap(method, move |store: Call<'_>, (handle,): (Handle,)| {
            Ok((read(store.data().passed_issuer(&handle)?).to_vec(),))
        })
    };
    add_getter("[method]issuer.certificate", |issuer| issuer.certificate())?;
    add_getter("[method]issuer.subject", |issuer| issuer.subject())?;
    add_getter("[method]issuer.signature-algorithm", |issuer| {
        issuer.signature_algorithm()
    })?;
    interface.func_wrap(
        "[method]issuer.subject-key-identifier",
        |store: Call<'_>, (handle,): (Handle,)| {
            let issuer = store.data().passed_issuer(&handle)?;
            Ok((issuer.subject_key_identifier().map(<[u8]>::to_vec),))
        },
    )?;
    interface.func_wrap(
        "[method]issuer.sign-certificate",
        |store: Call<'_>, (handle, tbs_certificate): (Handle, Vec<u8>)| {
            let issuer = store.data().passed_issuer(&handle)?;
            let signed = issuer.sign_certificate(&tbs_certificate);
            Ok((signed.map_err(|refusal| SigningError::Refused(refusal.0.to_owned())),))
        },
    )
}

type Call<'a> = StoreContextMut<'a, CallState>;
type Handle = Resource<PassedIssuer>;

impl CallState {
    fn draw(&mut self, bytes: &mut [u8]) -> Result<(), HostError> {
        self.has_drawn = true;
        Ok(self.random.fill(bytes)?)
    }

    fn passed_issuer(&self, handle: &Handle) -> Result<&dyn CertificateIssuer, HostError> {
        self.issuer
            .as_deref()
            .filter(|_| handle.rep() == ISSUER_HANDLE)
            .ok_or(HostError::IssuerNotPassed)
    }
}

/// A callback for notes, and for the message about dropped notes. Its parameters are the name of the called function and a
/// text without control characters.
///
/// Servers have no such callback, because notes may contain secrets.
pub type NoteReader = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The notes of one call.
pub(crate) struct Notes {
    reader: Option<NoteReader>,
    function: &'static str,
    count: u32,
}

impl Notes {
    /// Creates the notes of a call of this function.
    pub(crate) fn new(reader: Option<NoteReader>, function: &'static str) -> Self {
        Self {
            reader,
            function,
            count: 0,
        }
    }

    /// Reports the number of dropped notes at the end of a call.
    pub(crate) fn end(&self) {
        let dropped = self.count.saturating_sub(NOTES_MAX);
        if dropped > 0 {
            self.show(&format!("{dropped} more notes of this call are not shown"));
        }
    }

    /// Counts a note, and returns whether it is within the limit.
    fn count(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count <= NOTES_MAX
    }

    fn show(&self, text: &str) {
        if let Some(reader) = &self.reader {
            reader(self.function, &for_log(text));
        }
    }
}

/// Adds the interface `keywright:generator/notes` under this name: debug messages of a guest for its author.
pub(crate) fn add_notes_to_linker(
    linker: &mut Linker<CallState>,
    name: &str,
) -> wasmtime::Result<()> {
    let mut interface = linker.instance(name)?;
    interface.func_wrap("note", |mut store: Call<'_>, (text,): (WasmStr,)| {
        // Further notes are not decoded: in a function without loops, the engine does not check the deadline between them.
        if store.data_mut().notes.count() {
            // Decoded even without a reader, so that invalid UTF-8 traps in either case.
            let text = text.to_str(&store)?;
            store.data().notes.show(&text);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memories_of_a_call_share_one_limit() {
        let mut limiter = MemoryLimiter::new(100);
        let mut grow = |current, desired| {
            let is_granted = limiter.memory_growing(current, desired, None).unwrap();
            (is_granted, limiter.memory_bytes, limiter.is_exceeded)
        };
        // One memory is created and grows, then another is created; each byte counts once.
        assert_eq!(grow(0, 30), (true, 30, false));
        assert_eq!(grow(30, 60), (true, 60, false));
        assert_eq!(grow(0, 40), (true, 100, false));
        assert_eq!(grow(40, 41), (false, 100, true));
    }

    #[test]
    fn growth_past_the_own_maximum_of_a_memory_does_not_count() {
        let mut limiter = MemoryLimiter::new(100);
        for desired in [31, 1_000] {
            assert!(!limiter.memory_growing(0, desired, Some(30)).unwrap());
        }
        assert_eq!((limiter.memory_bytes, limiter.is_exceeded), (0, false));
        assert!(limiter.memory_growing(0, 30, Some(30)).unwrap());
        assert_eq!(limiter.memory_bytes, 30);
    }
}
