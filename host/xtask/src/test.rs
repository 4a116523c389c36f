//! Runs all tests, after building everything that they need.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    process::{Command, Stdio},
    sync::Mutex,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{MetadataCommand, Target};

use crate::{
    environments,
    guests::{self, EXAMPLE_MANIFEST, Which},
    other_languages, step,
};

/// Builds the plugins and programs that the tests use, and runs the tests.
pub(crate) fn test(arguments: &[String]) -> Result<()> {
    let begun = Instant::now();
    let report = |part: &str| eprintln!("xtask: {part} ({} s)", begun.elapsed().as_secs());
    report("building plugins, programs under test, and programs for tests");
    build(&["--bins", "--tests"])?;
    let suites = if arguments.is_empty() {
        all_suites()?
    } else {
        selected(arguments)
    };
    run_in_parallel(suites, &report)?;
    report("all tests passed");
    Ok(())
}

/// A part of the tests.
struct Suite {
    name: String,
    cargo: Command,
}

impl Suite {
    fn new<'a>(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
    ) -> Self {
        let mut cargo = cargo_test();
        cargo.args(arguments.into_iter().map(AsRef::as_ref));
        Self {
            name: name.into(),
            cargo,
        }
    }

    fn on_postgres(mut self) -> Self {
        self.name.push_str(" with PostgreSQL");
        self.cargo.envs(ON_POSTGRES);
        self
    }

    /// Runs the tests, and shows their output when they have ended, so that it is not mixed with the output of others.
    fn run(&mut self) -> Result<()> {
        let folder = step::workspace().join("target/test-output");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let path = folder.join(format!("{}.txt", self.name.replace(' ', "-")));
        let shown = || path.display().to_string();
        let output = File::create(&path).with_context(shown)?;
        let errors = output.try_clone().with_context(shown)?;
        self.cargo
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let outcome = step::run(&mut self.cargo);
        io::stdout().write_all(&step::read(&path)?)?;
        outcome
    }
}

/// Runs the suites, [`AT_ONCE`] at a time, and fails if one of them fails.
fn run_in_parallel(suites: Vec<Suite>, report: &(impl Fn(&str) + Sync)) -> Result<()> {
    let waiting = Mutex::new(suites.into_iter());
    let failures = Mutex::new(Vec::new());
    let next = || waiting.lock().ok()?.next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(mut suite) = next() {
                    report(&suite.name);
                    if let Err(failure) = suite.run() {
                        report(&format!("{} failed: {failure:#}", suite.name));
                        failures.lock().map(|mut all| all.push(suite.name)).ok();
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}

/// How many suites run at once, so that a suite uses the processors when another one waits, or has only its longest test left.
const AT_ONCE: usize = 2;

/// Returns all tests. Those that take the longest are first.
fn all_suites() -> Result<Vec<Suite>> {
    let metadata = MetadataCommand::new()
        .current_dir(step::workspace())
        .other_options(["--locked".to_owned()])
        .no_deps()
        .exec()
        .context("reading the packages")?;
    let targets = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets);
    let tests = targets.filter(|target| Target::is_test(target));
    let names: BTreeSet<&str> = tests.map(|test| test.name.as_str()).collect();
    let mut suites: Vec<Suite> = names
        .into_iter()
        .map(|name| Suite::new(name, ["--workspace", "--test", name]))
        .collect();
    suites.push(Suite::new("units", ["--workspace", "--lib", "--bins"]));
    suites.push(Suite::new("examples in comments", ["--workspace", "--doc"]));
    suites.push(Suite::new("example", ["--manifest-path", EXAMPLE_MANIFEST]));
    let skips = NOT_ON_POSTGRES
        .iter()
        .flat_map(|skipped| ["--skip", skipped]);
    suites.push(on_postgres("api", skips));
    for (suite, filters) in OTHERS_ON_POSTGRES {
        suites.push(on_postgres(suite, filters.iter().copied()));
    }
    suites.sort_by_key(|suite| {
        let position = LONGEST.iter().position(|name| *name == suite.name);
        position.unwrap_or(LONGEST.len())
    });
    Ok(suites)
}

/// The suites that take the longest. Two of them would otherwise be the last, and each use one processor.
const LONGEST: [&str; 4] = ["plugins", "api", "api with PostgreSQL", "running"];

fn on_postgres<'a>(suite: &'a str, options: impl Iterator<Item = &'a str>) -> Suite {
    let arguments = ["--workspace", "--test", suite, "--"];
    Suite::new(suite, arguments.into_iter().chain(options)).on_postgres()
}

/// Returns the tests that arguments for `cargo test` select, in all suites and in the API on PostgreSQL.
fn selected(arguments: &[String]) -> Vec<Suite> {
    let arguments = || arguments.iter().map(String::as_str);
    let all = ["--workspace"].into_iter().chain(arguments());
    let api = ["--workspace", "--test", "api"]
        .into_iter()
        .chain(arguments());
    vec![
        Suite::new("tests", all),
        Suite::new("api", api).on_postgres(),
    ]
}

/// Runs each suite on half of two more threads than there are processors, because most tests wait for processes or the disk. The
/// environment variable takes precedence.
fn cargo_test() -> Command {
    let mut cargo = linting_cargo();
    cargo.args(["test", "--locked", "--no-fail-fast"]);
    let processors = thread::available_parallelism();
    if let (None, Ok(processors)) = (std::env::var_os(TEST_THREADS), processors) {
        let threads = processors.saturating_add(2).get().div_ceil(AT_ONCE);
        cargo.env(TEST_THREADS, threads.to_string());
    }
    cargo
}

/// Returns a command for cargo. In CI, clippy compiles the workspace, and each warning is an error: a separate run of clippy
/// would compile all dependencies a second time. The processes of the tests do not inherit the option.
fn linting_cargo() -> Command {
    let mut cargo = step::cargo();
    if step::is_ci() {
        cargo
            .args(["--config", "build.rustc-workspace-wrapper='clippy-driver'"])
            .env("CLIPPY_ARGS", "--deny__CLIPPY_HACKERY__warnings");
    }
    cargo
}

/// The variable of Rust's test harness.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// The variable that makes the tests' servers use PostgreSQL.
const ON_POSTGRES: [(&str, &str); 1] = [("KEYWRIGHT_TEST_STORAGE", "postgres")];

/// Builds the guests, and in parallel programs and tests of the workspace. Meanwhile installs other programs, and builds guests and
/// clients in other languages, which mostly wait for downloads.
fn build(targets: &[&str]) -> Result<()> {
    let in_other_languages = || {
        environments::ensure_programs();
        other_languages::build_plugins()?;
        other_languages::build_clients()
    };
    // Selects the same packages as the tests, so that dependencies are built once.
    let workspace = || {
        step::run(
            linting_cargo()
                .args(["build", "--locked", "--workspace"])
                .args(targets),
        )
    };
    let guests = || guests::build(Which::All).map(|_| ());
    step::in_parallel([&in_other_languages, &workspace, &guests])
}

/// The tests of the API that do not run on PostgreSQL, because their outcome does not depend on the database: they check
/// connections, tokens, the syntax of requests, certificates, keys of a KMS, or what plugins generate.
const NOT_ON_POSTGRES: [&str; 22] = [
    "authentication::",
    "http::",
    "mutual_tls::",
    "limits::",
    "management::",
    "audit::cef::",
    "audit::sinks::",
    "set::certificate::",
    "generate::certificate::contents::",
    "generate::certificate::parameters::",
    "generate::keys::",
    "generate::password_and_user::",
    "compatibility::certificates::encoding::",
    "compatibility::certificates::signatures::",
    "compatibility::scalars::",
    "encryption_keys::kms::",
    "regenerate::certificate_kept::",
    "every_parameter_",
    "a_set_certificate_is_compared_by_its_contents",
    "a_set_key_is_kept_if_it_matches_the_parameters",
    "keep_their_length",
    "keeps_its_length",
];

/// The tests of other suites that also run on PostgreSQL, because they depend on the statements, order, paging and transactions of
/// the database.
const OTHERS_ON_POSTGRES: [(&str, &[&str]); 3] = [
    (
        "client",
        &[
            "certificates::rotate::",
            "find_lists_",
            "survive_a_round_trip",
            "piped_into_an_import",
        ],
    ),
    ("console", &["the_overview_"]),
    ("plugins", &["derive_again_from_a_new_input"]),
];

/// Refreshes the golden files: the tests that compare them write them if the variable is set.
pub(crate) fn refresh_golden_files() -> Result<()> {
    build(&["--bins"])?;
    step::run(
        cargo_test()
            .args([
                "--workspace",
                "--lib",
                "--bins",
                "--test",
                "plugins",
                "--test",
                "console",
                "golden",
            ])
            .env("KEYWRIGHT_REFRESH_GOLDEN_FILES", "1"),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_filter_on_postgresql_matches_a_module_or_a_test() {
        let suites = [("api", &NOT_ON_POSTGRES[..])];
        for (suite, filters) in suites.into_iter().chain(OTHERS_ON_POSTGRES) {
            let suite = &format!("tests/{suite}");
            for filter in filters {
                let is_matched = match filter.strip_suffix("::") {
                    Some(module) => {
                        let module = step::workspace()
                            .join(suite)
                            .join(module.replace("::", "/"));
                        module.is_dir() || module.with_extension("rs").is_file()
                    }
                    None => step::tracked_files().unwrap().iter().any(|file| {
                        file.starts_with(suite)
                            && fs::read_to_string(step::workspace().join(file))
                                .is_ok_and(|text| declares(&text, filter))
                    }),
                };
                assert!(is_matched, "{suite}: {filter}");
            }
        }
    }

    /// Returns whether a source declares a function whose name contains the text.
    fn declares(source: &str, part: &str) -> bool {
        let names = source.split("fn ").skip(1);
        names
            .filter_map(|rest| rest.split_once('('))
            .any(|(name, _)| name.contains(part))
    }
}
