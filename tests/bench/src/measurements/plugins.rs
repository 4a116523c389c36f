//! The figures of `keywright plugin bench`, and of calls in a server.
//!
//! The overhead is that of [`keywright_runtime::Speed`]: creating an instance, a call that does almost nothing, and
//! dropping the instance, on one thread. It can be measured for any component.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use chrono::{DateTime, Utc};
use keywright_core::{credential::Parameters, ports::Generator};
use keywright_harness::{server_program, workspace};
use keywright_runtime::{Compiler, Limits, PluginUnderTest, TestHost};
use serde_json::{Map, Value};

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
            "goal for the overhead",
            "a value: plugin bench",
            "in a server",
        ],
    );
    for component in components {
        let measured = Measured::of(&component)?;
        table.row([
            measured.name,
            format!("{:.1}", measured.overhead),
            measured.language.map_or_else(no_goal, |language| {
                let verdict =
                    Threshold::AtMost(language.overhead_us_max).verdict(measured.overhead);
                format!("{}: {verdict}", language.name)
            }),
            format!("{:.1}", measured.value),
            format!("{:.1}", measured.in_a_server),
        ]);
    }
    for language in absent {
        let name = format!(
            "{}: SKIPPED, {} is not built",
            language.name, language.component
        );
        table.row([name, no_goal(), no_goal(), no_goal(), no_goal()]);
    }
    Ok(table)
}

/// The figures of a component, in microseconds.
struct Measured {
    name: String,
    language: Option<&'static Language>,
    /// By `keywright plugin bench`.
    overhead: f64,
    value: f64,
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
        let config = plugin::config(component, inspection.grants);
        let served = plugin::load(&generator.credential_type, config)?;
        let runtime = tokio::runtime::Runtime::new()?;
        let parameters = runtime.block_on(served.normalize(Parameters::new(example)))?;
        let mut reported = [Vec::new(), Vec::new()];
        let mut in_a_server = Vec::new();
        for _ in 0..ROUNDS {
            let [overhead, value] = measured_by_program(component)?;
            reported[0].push(overhead);
            reported[1].push(value);
            let task = call_one_by_one(Arc::clone(&served), parameters.clone());
            in_a_server.push(runtime.block_on(async { tokio::spawn(task).await? })?);
        }
        let median = |times: Vec<f64>| Sample::new(times).median();
        let [overhead, value] = reported.map(median);
        Ok(Self {
            name: generator.credential_type,
            language: Language::of(component),
            overhead,
            value,
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

const ROUNDS: usize = 5;
const CALLS: u32 = 500;
