//! Runs all tests, after building everything that they need.

use std::{iter, panic::resume_unwind, process::Command, thread, time::Instant};

use anyhow::Result;

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
    build()?;
    report("tests");
    step::run(
        cargo_test()
            .args(["--workspace", "--no-fail-fast"])
            .args(arguments),
    )?;
    report("tests of the API with PostgreSQL");
    let skips = NOT_ON_POSTGRES
        .iter()
        .flat_map(|&skipped| ["--skip", skipped]);
    step::run(
        cargo_test()
            .args(["--workspace", "--no-fail-fast", "--test", "api"])
            .args(given_or(arguments, skips))
            .envs(ON_POSTGRES),
    )?;
    report("other tests with PostgreSQL");
    for (suite, filters) in OTHERS_ON_POSTGRES {
        step::run(
            cargo_test()
                .args(["--workspace", "--test", suite])
                .args(given_or(arguments, filters.iter().copied()))
                .envs(ON_POSTGRES),
        )?;
    }
    report("tests of the example");
    step::run(cargo_test().args(["--manifest-path", EXAMPLE_MANIFEST]))?;
    report("all tests passed");
    Ok(())
}

/// Returns the given arguments, or the default arguments for the tests if there are none.
fn given_or<'a>(arguments: &'a [String], default: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if arguments.is_empty() {
        iter::once("--").chain(default).collect()
    } else {
        arguments.iter().map(String::as_str).collect()
    }
}

/// Runs tests on two more threads than there are processors, because most tests wait for processes or the disk. The environment
/// variable takes precedence.
fn cargo_test() -> Command {
    let mut cargo = linting_cargo();
    cargo.args(["test", "--locked"]);
    let processors = std::thread::available_parallelism();
    if let (None, Ok(processors)) = (std::env::var_os(TEST_THREADS), processors) {
        cargo.env(TEST_THREADS, processors.saturating_add(2).to_string());
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

/// Builds the guests and the programs that tests run. In parallel, installs other programs, and builds guests and clients in other
/// languages, which mostly wait for downloads.
fn build() -> Result<()> {
    thread::scope(|scope| {
        let in_parallel = scope.spawn(|| {
            environments::ensure_programs();
            other_languages::build_plugins()?;
            other_languages::build_clients()
        });
        let rust = guests::build(Which::All).and_then(|_| {
            // Selects the same packages as the tests, so that dependencies are built once.
            step::run(linting_cargo().args(["build", "--locked", "--workspace", "--bins"]))
        });
        let others = in_parallel
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        rust.and(others)
    })
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
    build()?;
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
