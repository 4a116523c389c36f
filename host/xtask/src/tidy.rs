//! Rules for the workspace, as tests: `cargo xtask test` runs them.

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use crate::step::{self, tracked_files};

    /// The crates of the host that each crate of the host may depend on.
    const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 14] = [
        ("api", &["core", "json"]),
        ("author", &["json"]),
        ("client", &["json"]),
        ("console", &["core", "json"]),
        ("core", &["json"]),
        ("crypto", &["core", "der"]),
        ("der", &[]),
        ("json", &[]),
        ("kms", &["core"]),
        ("registry", &["core", "json"]),
        ("runtime", &["core", "json"]),
        (
            "server",
            &[
                "api", "author", "client", "console", "core", "crypto", "json", "kms", "registry",
                "runtime", "storage",
            ],
        ),
        ("storage", &["core"]),
        ("xtask", &["author"]),
    ];

    /// Heavy dependencies, each with the only crates of the host that may use it.
    const OWNED_DEPENDENCIES: [(&str, &[&str]); 11] = [
        ("axum", &["api", "console"]),
        ("metrics-exporter-prometheus", &["server"]),
        ("minisign-verify", &["registry"]),
        ("oauth2", &["console"]),
        ("rusqlite", &["storage"]),
        ("sqlx", &["storage"]),
        ("tonic", &["kms"]),
        ("wasmparser", &["runtime"]),
        ("wasmtime", &["runtime"]),
        ("x509-parser", &["crypto"]),
        ("wit-component", &["author"]),
    ];

    /// The functions of `serde_json` that parse text without the checks of `host/json`.
    const UNCHECKED_PARSERS: [&str; 6] = [
        "serde_json::from_str",
        "serde_json::from_slice",
        "serde_json::from_reader",
        "serde_json::Deserializer",
        "serde_json::StreamDeserializer",
        ".json::<",
    ];

    /// Files that parse without those checks, each with its reason.
    const UNCHECKED_FILES: [(&str, &str); 1] = [(
        "host/client/src/transfer/read/json.rs",
        "streams a file of any size: it skips text or keeps it raw, and each entry is checked on its own",
    )];

    /// The allowed files and folders at the top level of the workspace.
    const TOP_LEVEL: [&str; 19] = [
        ".cargo",
        ".ci",
        ".gitignore",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "clippy.toml",
        "deny.toml",
        "examples",
        "host",
        "migrations",
        "plugins",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "tests",
        "wit",
        ".git",
        "target",
    ];

    const LINES_MAX: usize = 600;
    const FUNCTION_LINES_MAX: usize = 70;

    #[test]
    fn host_crates_only_have_allowed_dependencies() {
        for (name, allowed) in ALLOWED_DEPENDENCIES {
            for dependency in dependencies(&format!("host/{name}")) {
                if let Some(target) = dependency.strip_prefix("keywright-") {
                    assert!(
                        allowed.contains(&target),
                        "{name} must not depend on {target}"
                    );
                }
            }
        }
    }

    #[test]
    fn all_host_crates_have_a_dependency_rule() {
        let crates: BTreeSet<_> = folder_names("host");
        let known: BTreeSet<_> = ALLOWED_DEPENDENCIES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(crates, known);
    }

    #[test]
    fn heavy_dependencies_have_few_owners_in_the_host() {
        for (name, _) in ALLOWED_DEPENDENCIES {
            for dependency in dependencies(&format!("host/{name}")) {
                for (owned, owners) in OWNED_DEPENDENCIES {
                    assert!(
                        dependency != owned || owners.contains(&name),
                        "{name} must not use {owned}"
                    );
                }
            }
        }
    }

    #[test]
    fn plugins_depend_on_no_host_crate_except_der() {
        for plugin in folder_names("plugins") {
            for dependency in dependencies(&format!("plugins/{plugin}")) {
                assert!(
                    !dependency.starts_with("keywright-")
                        || dependency.starts_with("keywright-plugin-")
                        || dependency == "keywright-der",
                    "{plugin} must not depend on {dependency}"
                );
            }
        }
    }

    #[test]
    fn top_level_contains_only_allowed_files() {
        let tracked = tracked_files().unwrap();
        let top: BTreeSet<_> = tracked
            .iter()
            .filter_map(|path| path.iter().next())
            .collect();
        for name in top {
            let name = name.to_string_lossy();
            assert!(
                TOP_LEVEL.contains(&name.as_ref()),
                "{name} must not be at the top level"
            );
        }
    }

    #[test]
    fn no_file_is_over_600_lines_and_no_function_over_70() {
        let mut too_long = Vec::new();
        for path in rust_files() {
            let text = fs::read_to_string(step::workspace().join(&path)).unwrap();
            let code = without_tests(&text);
            let lines = code.lines().count();
            if lines > LINES_MAX {
                too_long.push(format!("{} has {lines} lines", path.display()));
            }
            // In a test, a long function is a table of cases.
            if !path.iter().any(|folder| folder == "tests") {
                let functions = long_functions(code);
                too_long.extend(functions.map(|found| format!("{}: {found}", path.display())));
            }
        }
        assert!(too_long.is_empty(), "{too_long:#?}");
    }

    #[test]
    fn host_parses_json_only_with_its_own_crate() {
        for path in rust_files() {
            let is_of_the_host = path.starts_with("host")
                && !path.starts_with("host/json")
                && !path.starts_with("host/xtask")
                && !path.starts_with("host/author/templates")
                && !path
                    .iter()
                    .any(|part| part == "tests" || part == "tests.rs");
            let is_exempt = UNCHECKED_FILES
                .iter()
                .any(|(exempt, _)| path == Path::new(exempt));
            if !is_of_the_host || is_exempt {
                continue;
            }
            let text = fs::read_to_string(step::workspace().join(&path)).unwrap();
            let code = without_tests(&text);
            for parser in UNCHECKED_PARSERS {
                assert!(
                    !code.contains(parser),
                    "{} must parse JSON with keywright_json, not with {parser}",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn code_after_the_declaration_of_a_file_with_tests_is_checked() {
        let text = "#[cfg(test)]\nmod tests;\n\nfn code() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        let code = "#[cfg(test)]\nmod tests;\n\nfn code() {}\n\n";
        assert_eq!(without_tests(text), code);
    }

    #[test]
    fn code_contains_no_open_task_marks() {
        // Split, so that this file does not contain them.
        let marks =
            [("TO", "DO"), ("FIX", "ME"), ("X", "XX")].map(|(one, two)| format!("{one}{two}"));
        for path in rust_files() {
            let text = fs::read_to_string(step::workspace().join(&path)).unwrap();
            for mark in &marks {
                assert!(
                    !text.contains(mark.as_str()),
                    "{} contains a {mark}",
                    path.display()
                );
            }
        }
    }

    /// Returns the text before the unit tests, the last item of a file.
    fn without_tests(text: &str) -> &str {
        text.split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or(text)
    }

    fn long_functions(text: &str) -> impl Iterator<Item = String> {
        let mut found = Vec::new();
        let mut open: Option<(usize, usize, &str)> = None;
        for (number, line) in text.lines().enumerate() {
            let code = line.trim();
            let indent = line.len() - line.trim_start().len();
            if let Some((start, function_indent, name)) = open {
                if indent != function_indent || !code.starts_with(['}', ')']) {
                    continue;
                }
                if code.starts_with('}') {
                    let lines = number - start + 1;
                    if lines > FUNCTION_LINES_MAX {
                        found.push(format!("{name} … has {lines} lines"));
                    }
                    open = None;
                } else if code.ends_with(';') {
                    // A trait method without a body.
                    open = None;
                }
            } else if is_function(code) && !code.ends_with([';', '}']) {
                open = Some((number, indent, code));
            }
        }
        found.into_iter()
    }

    fn is_function(line: &str) -> bool {
        let modifiers = ["pub", "pub(crate)", "pub(super)", "async", "const"];
        let before = line.split_once("fn ").map(|(before, _)| before);
        before.is_some_and(|before| {
            before
                .split(' ')
                .all(|word| word.is_empty() || modifiers.contains(&word))
        })
    }

    /// Returns the names of a crate's normal dependencies.
    fn dependencies(folder: &str) -> Vec<String> {
        let manifest = step::workspace().join(folder).join("Cargo.toml");
        let text = fs::read_to_string(manifest).unwrap();
        let section = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
        section
            .lines()
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|name| !name.is_empty() && !name.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    fn folder_names(folder: &str) -> BTreeSet<String> {
        fs::read_dir(step::workspace().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().join("Cargo.toml").is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn rust_files() -> impl Iterator<Item = PathBuf> {
        tracked_files()
            .unwrap()
            .into_iter()
            .filter(|path| path.extension() == Some("rs".as_ref()))
    }
}
