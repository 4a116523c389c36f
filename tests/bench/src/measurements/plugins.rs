//! The figures of `keywright plugin bench`, compared with the engine alone and with calls in a server.
//!
//! All use one definition of the overhead, [`keywright_runtime::Speed`]: creating an instance, a call that does almost
//! nothing, and dropping the instance, on one thread. It can be measured for any component.
//!
//! The calls of the engine alone follow only the engine's documentation, so that they are an independent reference.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use aws_lc_rs::rand;
use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_harness::{server_program, workspace};
use keywright_runtime::{Compiler, Limits, PluginUnderTest, SystemRandom, TestHost};
use serde_json::{Map, Value};
use wasmtime::{
    Config, Enabled, Engine, PoolingAllocationConfig, Store,
    component::{Component, ComponentExportIndex, InstancePre, Linker, Val},
};

use crate::{
    plugin,
    statistics::{Outcome, Sample, micros},
    table::{Table, Threshold, no_goal},
};

/// Measures these components, or one component per language if the list is empty. Lists the components that `cargo xtask`
/// could not build.
pub(crate) fn measure(named: &[PathBuf]) -> Outcome<Table> {
    let (components, absent) = if named.is_empty() {
        built_components()
    } else {
        (named.to_vec(), Vec::new())
    };
    let mut table = Table::new(
        format!(
            "p50 of {ROUNDS} times {CALLS} calls, each in a fresh instance, µs; overhead: calls that generate nothing"
        ),
        &[
            "",
            "overhead: plugin bench",
            "with the engine alone",
            "ratio",
            "goal",
            "goal for the overhead",
            "a value: plugin bench",
            "in a server",
        ],
    );
    for component in components {
        let measured = Measured::of(&component)?;
        let ratio = measured.overhead_reported / measured.overhead;
        table.row([
            measured.name,
            format!("{:.1}", measured.overhead_reported),
            format!("{:.1}", measured.overhead),
            format!("{ratio:.2}"),
            AGREEMENT.verdict(ratio),
            measured.language.map_or_else(no_goal, |language| {
                let verdict =
                    Threshold::AtMost(language.overhead_us_max).verdict(measured.overhead_reported);
                format!("{}: {verdict}", language.name)
            }),
            format!("{:.1}", measured.value_reported),
            format!("{:.1}", measured.in_a_server),
        ]);
    }
    for language in absent {
        let name = format!(
            "{}: SKIPPED, {} is not built",
            language.name, language.component
        );
        let nothing: [String; 7] = std::array::from_fn(|_| no_goal());
        let [reported, alone, ratio, agreement, threshold, value, served] = nothing;
        table.row([
            name, reported, alone, ratio, agreement, threshold, value, served,
        ]);
    }
    Ok(table)
}

/// The figures of a component, in microseconds.
struct Measured {
    name: String,
    language: Option<&'static Language>,
    /// By `keywright plugin bench`.
    overhead_reported: f64,
    value_reported: f64,
    /// With the engine alone.
    overhead: f64,
    /// Generating a value, including the switch to a plugin thread and back.
    in_a_server: f64,
}

impl Measured {
    fn of(component: &Path) -> Outcome<Self> {
        let host = TestHost {
            issuers: Arc::new(|_, _| None),
            cache_directory: None,
            compiler: Compiler::ThisProcess,
            progress: None,
        };
        let limits = Limits::default();
        let plugin = PluginUnderTest::open(component.to_owned(), Map::new(), limits, &host)?;
        let inspection = plugin.inspect()?;
        let generator = inspection
            .generator
            .ok_or_else(|| format!("{} is not a generator", component.display()))?;
        let example = example(&generator.parameters_schema);
        let bare = BareComponent::load(component)?;
        let config = plugin::config(component, inspection.grants);
        let served = plugin::load(&generator.credential_type, config, Arc::new(SystemRandom))?;
        let runtime = tokio::runtime::Runtime::new()?;
        let parameters = runtime.block_on(served.normalize(Parameters::new(example)))?;
        let mut reported = [Vec::new(), Vec::new()];
        let (mut alone, mut in_a_server) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let [overhead, value] = measured_by_program(component)?;
            reported[0].push(overhead);
            reported[1].push(value);
            alone.push(bare.overhead(CALLS)?);
            let task = call_one_by_one(Arc::clone(&served), parameters.clone());
            in_a_server.push(runtime.block_on(async { tokio::spawn(task).await? })?);
        }
        let median = |times: Vec<f64>| Sample::new(times).median();
        let [overhead_reported, value_reported] = reported.map(median);
        Ok(Self {
            name: generator.credential_type,
            language: Language::of(component),
            overhead_reported,
            value_reported,
            overhead: median(alone),
            in_a_server: median(in_a_server),
        })
    }
}

/// Returns the p50 of the overhead and of generating a value, from the program's output.
fn measured_by_program(component: &Path) -> Outcome<[f64; 2]> {
    let output = Command::new(server_program())
        .args(["plugin", "bench", "--output", "json", "--calls"])
        .arg(CALLS.to_string())
        .arg(component)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("plugin bench exited with {}", output.status).into());
    }
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    let p50 = |what: &str| {
        let figure = reported
            .get(what)
            .and_then(|quantiles| quantiles.get("p50_us"));
        figure
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("the output of plugin bench has no p50 of {what}"))
    };
    Ok([p50("overhead")?, p50("call")?])
}

/// Returns the p50 of successive calls, in microseconds.
async fn call_one_by_one(generator: Arc<dyn Generator>, parameters: Parameters) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let begun = Instant::now();
        generator
            .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None, Vec::new())
            .await?;
        times.push(micros(begun.elapsed()));
    }
    Ok(Sample::new(times).median())
}

/// Returns the first of the examples in a schema.
fn example(schema: &Value) -> Map<String, Value> {
    let example = schema.get("examples").and_then(|examples| examples.get(0));
    example
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// Returns one built component in each language, and the languages without one.
fn built_components() -> (Vec<PathBuf>, Vec<&'static Language>) {
    let folder = workspace().join("target/components");
    let (mut components, mut absent) = (Vec::new(), Vec::new());
    for language in &LANGUAGES {
        let component = folder.join(language.component).with_extension("wasm");
        if component.is_file() {
            components.push(component);
        } else {
            absent.push(language);
        }
    }
    (components, absent)
}

/// A language of plugins.
struct Language {
    name: &'static str,
    /// A file that identifies its projects.
    file: &'static str,
    /// The name of our component in it.
    component: &'static str,
    /// The maximum overhead of a call, in microseconds.
    overhead_us_max: f64,
}

impl Language {
    /// Returns the language of one of our components, or of the project in whose folder a component is.
    fn of(component: &Path) -> Option<&'static Self> {
        let name = component.file_stem()?;
        let folder = component.parent()?;
        let is_built_here = folder.ends_with("target/components");
        LANGUAGES.iter().find(|language| {
            if is_built_here {
                name == language.component
            } else {
                folder.join(language.file).is_file()
            }
        })
    }
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "Rust",
        file: "Cargo.toml",
        component: "password",
        overhead_us_max: 50.0,
    },
    Language {
        name: "C",
        file: "plugin.c",
        component: "uuid",
        overhead_us_max: 50.0,
    },
    Language {
        name: "JavaScript",
        file: "package.json",
        component: "diceware",
        overhead_us_max: 500.0,
    },
    Language {
        name: "Python",
        file: "plugin.py",
        component: "totp",
        overhead_us_max: 2_000.0,
    },
    Language {
        name: "Go",
        file: "go.mod",
        component: "age",
        overhead_us_max: 2_000.0,
    },
];

/// The allowed ratio of the program's overhead to the overhead of the engine alone. A server also checks the types of all
/// functions, and counts memory.
const AGREEMENT: Threshold = Threshold::Within(0.8, 1.25);

const ROUNDS: usize = 5;
const CALLS: u32 = 500;

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
struct BareComponent {
    instance: InstancePre<()>,
    describe: ComponentExportIndex,
}

impl BareComponent {
    /// Compiles a component and links it.
    pub(crate) fn load(file: &Path) -> Outcome<Self> {
        let engine = engine()?;
        let component = Component::from_file(&engine, file)?;
        let exports = component.component_type();
        let name = exports
            .exports(&engine)
            .map(|(name, _)| name)
            .find(|name| name.starts_with(DESCRIPTOR))
            .ok_or_else(|| format!("{} is not a generator", file.display()))?;
        let descriptor = component.get_export_index(None, name);
        let describe = component
            .get_export_index(descriptor.as_ref(), DESCRIBE)
            .ok_or_else(|| format!("{} has no function {DESCRIBE}", file.display()))?;
        let mut linker = Linker::new(&engine);
        let mut random = linker.instance(RANDOM)?;
        random.func_wrap("get-random-bytes", |_, (count,): (u64,)| {
            let mut bytes = vec![0; usize::try_from(count)?];
            // A failure is ignored, because the bytes are only measured and never used as a secret.
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

    /// Returns the p50 of this many calls of `describe`, each in its own instance, in microseconds.
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
            .ok_or("the instance has no function describe")?;
        describe.call(&mut store, &[], &mut [Val::Bool(false)])?;
        Ok(())
    }
}

/// Returns an engine with deadlines that reuses the memory of instances.
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
