//! The WebAssembly engine, and the clock that enforces deadlines.

use std::{io, thread, time::Duration};

use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};

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
pub(crate) const MEMORIES_MAX: u32 = 3;
/// The maximum number of tables in a component.
pub(crate) const TABLES_MAX: u32 = 16;
/// The maximum number of elements in a table.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 200_000;
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
        // Casts of functions would abort the server: without its crate feature `gc`, the engine compiles but can't run them.
        .wasm_gc(false)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_calls_for_the_address_space_are_an_error() {
        assert!(new_engine(20_000, 4 << 30).is_err());
    }
}
