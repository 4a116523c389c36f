//! The figures of `keywright plugin bench`, compared with the engine alone and with calls in a server.
//!
//! All share one definition of the overhead, [`keywright_runtime::Speed`]: a fresh instance, a call that does almost
//! nothing, and the instance's end, on one thread. It needs no native twin of the plugin, so it can be measured for any
//! component. `guest-overhead` measures plugins with a native twin by the difference between the two.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_harness::{server_program, workspace};
use keywright_runtime::{Limits, PluginUnderTest, SystemRandom};
use serde_json::{Map, Value};

use crate::{
    Outcome,
    bare_component::BareComponent,
    plugin,
    statistics::{Sample, micros},
    table::{Aim, Table, no_aim},
};

/// Measures these components, or one in each language if none is given. Components that `cargo xtask` could not build
/// are listed as such.
pub(crate) fn measure(named: &[PathBuf]) -> Outcome<Table> {
    let (components, absent) = if named.is_empty() {
        ours()
    } else {
        (named.to_vec(), Vec::new())
    };
    let mut table = Table::new(
        format!(
            "p50 of {ROUNDS} times {CALLS} calls, a fresh instance each, µs; overhead: of calls that make nothing"
        ),
        &[
            "",
            "overhead: plugin bench",
            "with the engine alone",
            "ratio",
            "aim",
            "aim of the overhead",
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
            measured.language.map_or_else(no_aim, |language| {
                let verdict =
                    Aim::AtMost(language.overhead_us_max).verdict(measured.overhead_reported);
                format!("{}: {verdict}", language.name)
            }),
            format!("{:.1}", measured.value_reported),
            format!("{:.1}", measured.in_a_server),
        ]);
    }
    for language in absent {
        let name = format!(
            "{}: LEFT OUT, {} is not built",
            language.name, language.component
        );
        let nothing: [String; 7] = std::array::from_fn(|_| no_aim());
        let [reported, here, ratio, agreement, aim, value, served] = nothing;
        table.row([name, reported, here, ratio, agreement, aim, value, served]);
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
        let candidate = PluginUnderTest::open(component.to_owned(), Map::new(), Limits::default())?;
        let inspection = candidate.inspect()?;
        let generator = inspection
            .generator
            .ok_or_else(|| format!("{} is no generator", component.display()))?;
        let example = example(&generator.parameters_schema);
        let bare = BareComponent::load(component)?;
        let config = plugin::config(component, inspection.grants);
        let served = plugin::load(&generator.credential_type, config, Arc::new(SystemRandom))?;
        let runtime = tokio::runtime::Runtime::new()?;
        let parameters = runtime.block_on(served.normalize(&Parameters::new(example)))?;
        let mut reported = [Vec::new(), Vec::new()];
        let (mut here, mut in_a_server) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let [overhead, value] = measured_by_program(component)?;
            reported[0].push(overhead);
            reported[1].push(value);
            here.push(bare.overhead(CALLS)?);
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
            overhead: median(here),
            in_a_server: median(in_a_server),
        })
    }
}

/// The p50 of the overhead and of generating a value, from the program's output.
fn measured_by_program(component: &Path) -> Outcome<[f64; 2]> {
    let output = Command::new(server_program())
        .args(["plugin", "bench", "--output", "json", "--calls"])
        .arg(CALLS.to_string())
        .arg(component)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("plugin bench ended with {}", output.status).into());
    }
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    let p50 = |what: &str| {
        let figure = reported
            .get(what)
            .and_then(|quantiles| quantiles.get("p50_us"));
        figure
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("plugin bench says nothing of {what}"))
    };
    Ok([p50("overhead")?, p50("call")?])
}

/// The p50 of successive calls, in microseconds.
async fn call_one_by_one(generator: Arc<dyn Generator>, parameters: Parameters) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let begun = Instant::now();
        generator
            .generate(&parameters, DateTime::<Utc>::UNIX_EPOCH, None)
            .await?;
        times.push(micros(begun.elapsed()));
    }
    Ok(Sample::new(times).median())
}

/// The first of the examples in a schema.
fn example(schema: &Value) -> Map<String, Value> {
    let example = schema.get("examples").and_then(|examples| examples.get(0));
    example
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// One built component in each language, and the languages without one.
fn ours() -> (Vec<PathBuf>, Vec<&'static Language>) {
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
    /// The language of one of our components, or of the project in whose folder a component is.
    fn of(component: &Path) -> Option<&'static Self> {
        let name = component.file_stem()?;
        let folder = component.parent()?;
        let is_ours = folder.ends_with("target/components");
        LANGUAGES.iter().find(|language| {
            if is_ours {
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

/// The allowed ratio of the program's overhead to that of the engine alone. A server also checks the types of all
/// functions, and counts memory.
const AGREEMENT: Aim = Aim::Within(0.8, 1.25);

const ROUNDS: usize = 5;
const CALLS: u32 = 500;
