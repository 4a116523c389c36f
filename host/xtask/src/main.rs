//! `cargo xtask …`: tasks that plain cargo commands do not cover.

mod bench;
mod cycles;
mod dist;
mod environments;
mod guests;
mod language;
mod other_languages;
mod run;
mod stats;
mod step;
mod test;
mod tidy;
mod toolchains;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  run [--release] [-- ARGS]  build everything and start a development server; ARGS go to `keywright develop`
  test [FILTER]              build and run all tests, or the tests whose names contain FILTER
  bench [NAME ...]           measure a release build and compare it with the performance goals
  bench compare REV [NAME ...]
                             measure requests, alternating with the server of a git revision
  dist [--debug]             write an archive with everything that a server needs to target/dist
  build-guests               build the plugins and the test guests into target/components
  stats                      print the numbers of lines and files
  golden                     regenerate the golden files from the current build
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Otherwise `cargo xtask golden --help` would regenerate the golden files.
    if arguments
        .iter()
        .take(2)
        .any(|argument| argument == "--help")
    {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match command.as_str() {
        "run" => run::run(rest),
        "test" => test::test(rest),
        "bench" => bench::bench(rest),
        "dist" => dist::dist(rest),
        "build-guests" => {
            guests::build(guests::Which::All).and_then(|_| other_languages::build_plugins())
        }
        "stats" => stats::stats(),
        "golden" => test::refresh_golden_files(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason:#}");
            ExitCode::FAILURE
        }
    }
}
