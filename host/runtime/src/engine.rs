//! The one WebAssembly engine, and the clock by which it ends calls.

use std::{io, thread, time::Duration};

use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};

/// How often the engine looks for calls past their deadline: the precision of deadlines.
pub(crate) const EPOCH_TICK: Duration = Duration::from_millis(10);
/// The stack of a guest, in bytes. Threads that call guests need as much, and some for the host.
const GUEST_STACK_BYTES_MAX: usize = 1024 * 1024;
/// The stack of a thread that calls guests, in bytes.
pub(crate) const CALLING_THREAD_STACK_BYTES: usize = GUEST_STACK_BYTES_MAX + 3 * 1024 * 1024;
/// The most core instances in one component. Toolchains of interpreted languages link a dozen or two.
const CORE_INSTANCES_MAX: u32 = 64;
/// The most linear memories in one component. Toolchains of interpreted languages make two, and one with nothing in it where their
/// runtime's imports are closed.
pub(crate) const MEMORIES_MAX: u32 = 3;
/// The most tables in one component.
pub(crate) const TABLES_MAX: u32 = 16;
/// The most elements in one table.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 200_000;
/// The host's own bookkeeping for one instance, in bytes.
const INSTANCE_BYTES_MAX: usize = 1024 * 1024;
/// The bytes of each unused table that stay mapped between calls.
const TABLE_BYTES_KEPT: usize = 16 * 1024;

/// Makes the engine, with room for so many simultaneous calls of guests with memories of at most that size.
///
/// # Errors
/// When the address space for that room can't be had.
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
        // Memories are discarded after each call. To keep the pages in place, the engine would have to find those that the call has
        // changed by `PAGEMAP_SCAN`, which misses pages that the system has swapped out or is moving: the next call could read them.
        .pagemap_scan(Enabled::No)
        .table_keep_resident(TABLE_BYTES_KEPT);
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .wasm_wide_arithmetic(true)
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK_BYTES_MAX)
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(pool);
    Engine::new(&config)
}

/// Starts the thread that advances the engine's clock every [`EPOCH_TICK`], for as long as the engine is in use.
///
/// # Errors
/// When the system gives no thread.
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

/// How many ticks a deadline is. One more than it fills, because the first may come at once.
pub(crate) fn deadline_ticks(deadline_ms: u64) -> u64 {
    let tick_ms = u64::try_from(EPOCH_TICK.as_millis()).unwrap_or(1);
    deadline_ms.div_ceil(tick_ms) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_calls_than_the_address_space_has_room_for_are_an_error() {
        assert!(new_engine(20_000, 4 << 30).is_err());
    }

    #[test]
    fn deadlines_are_never_shorter_than_configured() {
        assert_eq!(deadline_ticks(10), 2);
        assert_eq!(deadline_ticks(11), 3);
    }
}
