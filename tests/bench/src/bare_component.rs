//! Components called with the engine alone, following only its documentation, as an independent reference for the
//! server's figures.

use std::{path::Path, time::Instant};

use aws_lc_rs::rand;
use wasmtime::{
    Config, Enabled, Engine, PoolingAllocationConfig, Store,
    component::{Component, ComponentExportIndex, InstancePre, Linker, Val},
};

use crate::{
    Outcome,
    statistics::{Sample, micros},
};

/// The interface whose only function does almost nothing, in any version.
const DESCRIPTOR: &str = "keywright:generator/descriptor@";
const DESCRIBE: &str = "describe";
/// The only interface whose functions do not trap: language runtimes use it before any call.
const RANDOM: &str = "wasi:random/random@0.2.0";
/// The default memory limit of a call.
const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The stack of a guest; language runtimes need more than the engine's default.
const STACK_BYTES_MAX: usize = 1024 * 1024;
/// The number of warm-up calls.
const CALLS_BEFORE: u32 = 10;

/// A component that is ready to be instantiated.
pub(crate) struct BareComponent {
    instance: InstancePre<()>,
    describe: ComponentExportIndex,
}

impl BareComponent {
    /// Compiles a component and links it.
    ///
    /// # Errors
    /// Returns an error if it is not a generator.
    pub(crate) fn load(file: &Path) -> Outcome<Self> {
        let engine = engine()?;
        let component = Component::from_file(&engine, file)?;
        let exports = component.component_type();
        let name = exports
            .exports(&engine)
            .map(|(name, _)| name)
            .find(|name| name.starts_with(DESCRIPTOR))
            .ok_or_else(|| format!("{} is no generator", file.display()))?;
        let descriptor = component.get_export_index(None, name);
        let describe = component
            .get_export_index(descriptor.as_ref(), DESCRIBE)
            .ok_or_else(|| format!("{} does not describe itself", file.display()))?;
        let mut linker = Linker::new(&engine);
        let mut random = linker.instance(RANDOM)?;
        random.func_wrap("get-random-bytes", |_, (count,): (u64,)| {
            let mut bytes = vec![0; usize::try_from(count)?];
            // Bytes that could not be filled would only be measured, never used.
            let _ = rand::fill(&mut bytes);
            Ok((bytes,))
        })?;
        random.func_wrap("get-random-u64", |_, (): ()| Ok((0_u64,)))?;
        linker.define_unknown_imports_as_traps(&component)?;
        Ok(Self {
            instance: linker.instantiate_pre(&component)?,
            describe,
        })
    }

    /// The p50 of this many calls of `describe`, each in its own instance, in microseconds.
    ///
    /// # Errors
    /// Returns an error if a call fails.
    pub(crate) fn overhead(&self, calls: u32) -> Outcome<f64> {
        let mut times = Vec::new();
        for number in 0..CALLS_BEFORE + calls {
            let begun = Instant::now();
            self.call()?;
            if number >= CALLS_BEFORE {
                times.push(micros(begun.elapsed()));
            }
        }
        Ok(Sample::new(times).median())
    }

    fn call(&self) -> Outcome<()> {
        let mut store = Store::new(self.instance.engine(), ());
        store.set_epoch_deadline(1);
        let instance = self.instance.instantiate(&mut store)?;
        let describe = instance
            .get_func(&mut store, self.describe)
            .ok_or("the function has gone")?;
        describe.call(&mut store, &[], &mut [Val::Bool(false)])?;
        Ok(())
    }
}

/// An engine for many instances: with a pool of them, and with deadlines.
fn engine() -> Outcome<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(1)
        .total_core_instances(64)
        .total_memories(3)
        .total_tables(16)
        .max_core_instances_per_component(64)
        .max_memories_per_component(3)
        .max_tables_per_component(16)
        .max_tables_per_module(16)
        .table_elements(200_000)
        .max_memory_size(MEMORY_BYTES_MAX)
        .linear_memory_keep_resident(256 * 1024)
        .table_keep_resident(16 * 1024)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .wasm_wide_arithmetic(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK_BYTES_MAX)
        .allocation_strategy(pool);
    Ok(Engine::new(&config)?)
}
