//! The WebAssembly engine, the clock that enforces deadlines, and the limiter of memories and tables.

use std::{io, thread, time::Duration};

use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig, ResourceLimiter};

/// The interval at which the engine checks deadlines.
pub(crate) const EPOCH_TICK: Duration = Duration::from_millis(10);
/// The stack of a guest, in bytes. Threads that call guests need this and some more for the host.
const GUEST_STACK_BYTES_MAX: usize = 1024 * 1024;
/// The stack of a thread that calls guests, in bytes.
pub(crate) const CALLING_THREAD_STACK_BYTES: usize = GUEST_STACK_BYTES_MAX + 3 * 1024 * 1024;
/// The maximum number of core instances in a component. Toolchains of interpreted languages link a dozen or two.
const CORE_INSTANCES_MAX: u32 = 64;
/// The maximum number of linear memories in a component. Toolchains of interpreted languages create two, and an empty one if
/// their runtime's imports are stubbed.
const MEMORIES_MAX: u32 = 3;
/// The maximum number of tables in a component.
const TABLES_MAX: u32 = 16;
/// The maximum number of elements in a table.
const TABLE_ELEMENTS_MAX: usize = 200_000;
/// The host's own bookkeeping for one instance, in bytes.
const INSTANCE_BYTES_MAX: usize = 1024 * 1024;
/// The first bytes of each memory, which are overwritten with their initial content after a call. The memories of shipped plugins
/// are laid out so that short calls write only to these bytes.
const MEMORY_BYTES_RESET: usize = 256 * 1024;
/// The first bytes of each table, which are overwritten with their initial content after a call.
const TABLE_BYTES_RESET: usize = 16 * 1024;

/// Creates an engine that only compiles, for engines of [`new_engine`].
pub(crate) fn compiling_engine() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// Creates the engine, sized for this number of simultaneous calls with memories of at most this size.
pub(crate) fn new_engine(calls: u32, memory_bytes_max: u64) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(calls.saturating_mul(MEMORIES_MAX))
        .total_tables(calls.saturating_mul(TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_tables_per_module(TABLES_MAX)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_memory_size(usize::try_from(memory_bytes_max)?)
        // `PAGEMAP_SCAN` misses changed pages that are swapped out or being moved: the next call could read them. So the first
        // bytes are always overwritten, and the pages after them are always discarded.
        .pagemap_scan(Enabled::No)
        .linear_memory_keep_resident(MEMORY_BYTES_RESET)
        .table_keep_resident(TABLE_BYTES_RESET);
    let mut config = config();
    config.allocation_strategy(pool);
    Engine::new(&config)
}

/// Returns the settings that determine compiled code.
fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .wasm_wide_arithmetic(true)
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK_BYTES_MAX)
        .wasm_backtrace_max_frames(None);
    config
}

/// Starts the thread that advances the engine's clock every [`EPOCH_TICK`] until the engine is dropped.
pub(crate) fn start_ticking(engine: &Engine) -> io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new()
        .name("plugin-clock".to_owned())
        .spawn(move || tick(&engine))?;
    Ok(())
}

fn tick(engine: &EngineWeak) {
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        thread::sleep(EPOCH_TICK);
    }
}

/// Converts a deadline to ticks. Adds one, because the first tick may come at once.
pub(crate) fn deadline_ticks(deadline_ms: u64) -> u64 {
    let tick_ms = u64::try_from(EPOCH_TICK.as_millis()).unwrap_or(1);
    deadline_ms.div_ceil(tick_ms) + 1
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
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_calls_for_the_address_space_are_an_error() {
        assert!(new_engine(20_000, 4 << 30).is_err());
    }

    #[test]
    fn deadlines_are_never_shorter_than_configured() {
        assert_eq!(deadline_ticks(10), 2);
        assert_eq!(deadline_ticks(11), 3);
    }

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
}
