//! Runs all tests, after building everything that they need.

use std::{
    fs::File,
    io::{self, Write},
    panic::resume_unwind,
    path::Path,
    process::Command,
    thread,
    time::Instant,
};

use cargo_metadata::MetadataCommand;

use crate::{
    environments,
    guests::{self, EXAMPLE_MANIFEST, Which},
    other_languages,
    step::{self, StepError},
};

/// Builds the plugins and programs that the tests use, and runs the tests.
///
/// Most tests wait for processes or the disk. So two groups of suites run at the same time. The output of the second group is
/// shown when both have ended.
pub(crate) fn test(arguments: &[String]) -> Result<(), StepError> {
    let begun = Instant::now();
    let report = |part: &str| eprintln!("xtask: {part} ({} s)", begun.elapsed().as_secs());
    report("building plugins, programs under test, and programs for tests");
    build()?;
    report("building tests");
    step::run(cargo_test().args(["--workspace", "--no-run"]))?;
    let log = step::workspace().join(SECOND_LOG);
    report("tests");
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| run_second_group(arguments, &log));
        let first = run_first_group(arguments);
        report("the first group of tests has ended");
        let second = second.join().unwrap_or_else(|panic| resume_unwind(panic));
        (first, second)
    });
    report("the output of the second group of tests");
    io::stderr()
        .write_all(&step::read(&log)?)
        .map_err(|cause| StepError::new("showing the output", cause))?;
    first.and(second)?;
    report("all tests passed");
    Ok(())
}

/// Runs all tests on SQLite that are not in the second group.
fn run_first_group(arguments: &[String]) -> Result<(), StepError> {
    let metadata = MetadataCommand::new()
        .current_dir(step::workspace())
        .no_deps()
        .exec()
        .map_err(|cause| StepError::new("listing the suites", cause))?;
    let targets = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets);
    let suites = targets
        .filter(|target| target.is_test() && !SECOND_GROUP.contains(&target.name.as_str()))
        .flat_map(|target| ["--test", &target.name]);
    let tests = ["--workspace", "--no-fail-fast", "--lib", "--bins"];
    step::run(cargo_test().args(tests).args(suites).args(arguments))?;
    step::run(cargo_test().args(["--workspace", "--doc"]).args(arguments))?;
    step::run(cargo_test().args(["--manifest-path", EXAMPLE_MANIFEST]))
}

/// Runs the suites that take longest, and the tests with PostgreSQL. Writes their output to a file.
fn run_second_group(arguments: &[String], log: &Path) -> Result<(), StepError> {
    let failed = |cause| StepError::new(log.display(), cause);
    let output = File::create(log).map_err(failed)?;
    let run = |tests: &mut Command| {
        tests.stdout(output.try_clone().map_err(failed)?);
        tests.stderr(output.try_clone().map_err(failed)?);
        step::run(tests)
    };
    let suites = SECOND_GROUP.iter().flat_map(|suite| ["--test", suite]);
    run(cargo_test()
        .args(["--workspace", "--no-fail-fast"])
        .args(suites)
        .args(arguments))?;
    for (suite, selection) in ON_POSTGRES {
        let selection = match arguments {
            [] => selection
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
            arguments => arguments.to_owned(),
        };
        run(cargo_test()
            .args(["--workspace", "--no-fail-fast", "--test", suite])
            .args(selection)
            .env("KEYWRIGHT_TEST_STORAGE", "postgres"))?;
    }
    Ok(())
}

fn cargo_test() -> Command {
    let mut cargo = step::cargo();
    cargo.args(["test", "--locked"]);
    cargo
}

/// The suites of the second group, which take about as long as all others.
const SECOND_GROUP: [&str; 2] = ["api", "plugins"];

/// The output of the second group, from the workspace's root.
const SECOND_LOG: &str = "target/tests.log";

/// Builds the guests and the programs that tests run. In parallel, installs other programs, and builds guests and clients in other
/// languages, which mostly wait for downloads.
fn build() -> Result<(), StepError> {
    thread::scope(|scope| {
        let in_parallel = scope.spawn(|| {
            environments::ensure_programs();
            other_languages::build_plugins()?;
            other_languages::build_clients()
        });
        let rust = guests::build(Which::All).and_then(|_| {
            // Selects the same packages as the tests, so that dependencies are built once.
            step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins"]))
        });
        let others = in_parallel
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic));
        rust.and(others)
    })
}

/// The tests of the API that also run on PostgreSQL: all except tests whose outcome does not depend on the database. These tests
/// check connections, tokens, the syntax of requests, certificates, or what plugins generate.
const API_ON_POSTGRES: [&str; 31] = [
    "--",
    "--skip",
    "authentication::",
    "--skip",
    "http::",
    "--skip",
    "mutual_tls::",
    "--skip",
    "limits::",
    "--skip",
    "management::",
    "--skip",
    "audit::cef::",
    "--skip",
    "audit::sinks::",
    "--skip",
    "set::certificate::",
    "--skip",
    "generate::certificate::contents::",
    "--skip",
    "generate::certificate::parameters::",
    "--skip",
    "generate::keys::",
    "--skip",
    "generate::password_and_user::",
    "--skip",
    "rulings::certificates::encoding::",
    "--skip",
    "rulings::certificates::signatures::",
    "--skip",
    "rulings::scalars::",
];

/// The client's tests that also run on PostgreSQL, because they depend on the order, paging and transactions of the database.
const CLIENT_ON_POSTGRES: [&str; 5] = [
    "--",
    "certificates::rotate::",
    "find_lists_",
    "survive_a_round_trip",
    "piped_into_an_import",
];

/// The suites that also run on PostgreSQL, with the selections of their tests.
const ON_POSTGRES: [(&str, &[&str]); 2] =
    [("api", &API_ON_POSTGRES), ("client", &CLIENT_ON_POSTGRES)];

/// Refreshes the golden files: the tests that compare them write them if the variable is set.
pub(crate) fn refresh_golden_files() -> Result<(), StepError> {
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
        for (suite, arguments) in ON_POSTGRES {
            let filters = arguments
                .iter()
                .filter(|argument| !argument.starts_with('-'));
            for filter in filters {
                let is_matched = match filter.strip_suffix("::") {
                    Some(module) => {
                        let module = step::workspace()
                            .join("tests")
                            .join(suite)
                            .join(module.replace("::", "/"));
                        module.is_dir() || module.with_extension("rs").is_file()
                    }
                    None => step::tracked_files().unwrap().iter().any(|file| {
                        file.starts_with(Path::new("tests").join(suite))
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
