//! `keywright plugin new` and `keywright plugin build`.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use keywright_harness::{
    Arguments, Commanded, Options, Server, Text, folder_of_user, print_message, run_program,
    workspace,
};
use serde_json::json;
use wit_component::DecodedWasm;

use super::{Workshop, words};

/// Each language of projects, with the programs that can build it. One of them is enough.
pub(super) const LANGUAGES: [(&str, &[&str]); 5] = [
    ("rust", &["cargo"]),
    ("c", &["zig", "python-zig", "clang"]),
    ("js", &["jco"]),
    ("python", &["componentize-py"]),
    ("go", &["go"]),
];

/// The language whose interpreter takes the longest to compile. Only `../examples.rs` tests it in a server.
pub(super) const SLOWEST: &str = "python";

impl Workshop {
    /// Runs `keywright plugin` in the folder, with the installed toolchains.
    pub(super) fn with_toolchains(&self, arguments: &(impl Arguments + ?Sized)) -> Commanded {
        let path = env::join_paths(program_folders()).unwrap();
        // New projects have the same dependencies as the example.
        let compiled = workspace().join("target/example-guests");
        // The packages of projects in Python.
        let python = workspace().join("target/toolchains/python");
        // The compiled standard libraries of C and Go.
        let cache = folder_of_user("XDG_CACHE_HOME", ".cache");
        let (zig, go) = (cache.join("zig"), cache.join("go-build"));
        let variables = [
            ("PATH", path.to_str().unwrap()),
            ("CARGO_TARGET_DIR", compiled.to_str().unwrap()),
            ("VIRTUAL_ENV", python.to_str().unwrap()),
            ("ZIG_GLOBAL_CACHE_DIR", zig.to_str().unwrap()),
            ("GOCACHE", go.to_str().unwrap()),
        ];
        let arguments = [&["plugin"], &arguments.list()[..]].concat();
        run_program(self.0.path(), &arguments, &variables)
    }

    /// Creates a project.
    pub(super) fn created(&self, name: &str, language: &str) -> Commanded {
        let line = format!("new {name} --lang {language}");
        self.plugin(&line).expect(0)
    }

    /// Creates a project and builds it. The name must be unique: all tests share the folder for compiled files.
    pub(super) fn built(&self, name: &str, language: &str) {
        self.created(name, language);
        let built = self.with_toolchains(&["build", name]).expect(0);
        let file = format!("{name}/{name}.wasm, ");
        assert!(built.output.starts_with(&file), "{built:#?}");
    }

    /// Adds a shell script to the programs of [`Self::with_scripts`].
    fn script(&self, name: &str, script: &str) {
        fs::create_dir_all(self.path("bin")).unwrap();
        // Another process writes the file. If this process opened it for writing, children of other threads could inherit it,
        // and the script could not be run (ETXTBSY).
        let file = self.path("bin").join(name);
        let arguments = ["-m", "755", "/dev/stdin", file.to_str().unwrap()];
        let script = format!("#!/bin/sh\n{script}\n");
        Commanded::run("install", &arguments, &script).expect(0);
    }

    /// Builds the project `token` with no other programs than scripts.
    fn with_scripts(&self) -> Commanded {
        let path = self.path("bin");
        let path = [("PATH", path.to_str().unwrap())];
        run_program(self.0.path(), "plugin build token", &path)
    }
}

/// Builds, tests and serves a new project in every language whose tools are installed.
#[tokio::test]
async fn new_project_can_be_built_tested_and_served() {
    let workshop = Workshop::with(&[]);
    let mut options = Options::default().without_plugins();
    let mut types = Vec::new();
    for (language, _) in LANGUAGES {
        if !has_tools(language) {
            continue;
        }
        let name = format!("in-{language}");
        workshop.built(&name, language);
        let component = workshop.path(&format!("{name}/{name}.wasm"));
        assert_eq!(imports(&component), ["wasi:random/random"], "{language}");
        let file = component.to_str().unwrap();
        let tested = workshop.plugin(&["test", file]).expect(0).output;
        tested.assert_contains("test vector 5");
        tested.assert_contains("random, with at least 256 bits");
        assert_failures_are_reported(&workshop, file);
        if language == SLOWEST {
            continue;
        }
        let section = format!("component = {component:?}\ngrants = [\"random\"]");
        options = options.generator(&name, &section);
        types.push(name);
    }
    let server = Server::start_with(&options).await;
    for credential_type in types {
        let name = format!("/{credential_type}");
        let parameters = json!({"length": 20});
        let made = server.generated(&name, &credential_type, parameters).await;
        assert_eq!(made["value"].as_str().unwrap().len(), 40, "{made}");
        let again = server.regenerated(&name).await;
        assert_eq!(again["value"].as_str().unwrap().len(), 40, "{again}");
        assert_ne!(again["value"], made["value"]);
        let path = format!("/api/v1/data?name={name}&current=true");
        let read = server.get_json(&path).await;
        assert_eq!(read["data"], json!([again]));
        let parameters = json!({"length": 65});
        let refused = server.generate(&name, &credential_type, parameters).await;
        refused.expect_error(400, "length");
    }
}

/// Asserts that a generator reports the failures of the templates.
fn assert_failures_are_reported(workshop: &Workshop, file: &str) {
    for (settings, expected) in [
        (r#"{"length_max": 16}"#, "length must be at most "),
        (
            r#"{"length_max": "16"}"#,
            "invalid settings: length_max must be a whole number",
        ),
        (r#"{"unknown": 16}"#, "invalid settings: unknown is unknown"),
    ] {
        let line = format!("run {file} --settings '{settings}'");
        workshop.fails(&line, 1, expected);
    }
    let settings = r#"{"length_max": 32}"#;
    let run = ["run", file, "--settings", settings];
    workshop.plugin(&run).expect(0);
}

/// Runs the commands below `Examples:` in the help texts, first in the help of `new`.
#[test]
fn examples_in_help_of_new_and_build_work() {
    let workshop = Workshop::with(&[]);
    let mut errors = String::new();
    for verb in ["new", "build"] {
        let help = workshop.plugin(&[verb, "--help"]).expect(0).output;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        let lines = examples.lines().map(str::trim);
        for line in lines.filter(|line| line.starts_with("keywright ")) {
            let run = workshop.with_toolchains(&words(line)[2..]).expect(0);
            errors.push_str(&run.errors);
        }
    }
    for file in [
        "api-key/src/lib.rs",
        "door-code/plugin.c",
        "api-key/api-key.wasm",
        "key.wasm",
    ] {
        assert!(workshop.path(file).is_file(), "{file}");
    }
    let call = "+ cd api-key && cargo build --release --target wasm32-unknown-unknown";
    assert_eq!(errors.matches(call).count(), 2, "{errors}");
}

#[test]
fn folder_with_no_project_or_two_is_rejected() {
    let workshop = Workshop::with(&[]);
    for (files, expected) in [
        (&[][..], "there is no Cargo.toml, plugin.c, package.json"),
        (&["plugin.c", "go.mod"], "it has both plugin.c and go.mod"),
    ] {
        for file in files {
            workshop.write(file, "");
        }
        workshop.fails("build", 1, expected);
    }
    workshop.fails("build absent", 1, "absent is not a folder");
}

#[test]
fn missing_tool_is_reported_with_installation_instructions() {
    for (language, tool, remedy) in [
        ("rust", "cargo", "https://rustup.rs"),
        ("c", "a C compiler for WebAssembly", "pip install ziglang"),
        ("js", "jco", "npm install"),
        (
            "python",
            "componentize-py",
            "pip install -r requirements.txt",
        ),
        ("go", "go", "https://go.dev/dl"),
    ] {
        let workshop = Workshop::with(&[]);
        workshop.created("token", language);
        let failed = workshop.with_scripts().expect(1);
        let missing = format!("{tool} is missing");
        for expected in [&missing, remedy] {
            failed.errors.assert_contains(expected);
        }
        assert_eq!(failed.output, "");
    }
}

#[test]
fn go_without_the_known_declaration_of_time_now_is_refused() {
    let workshop = Workshop::with(&[]);
    workshop.created("token", "go");
    fs::create_dir_all(workshop.path("src/time")).unwrap();
    workshop.write("src/time/time.go", "func Now() (now Time) {");
    workshop.script("go", &format!("echo {:?}", workshop.path("")));
    let failed = workshop.with_scripts().expect(1);
    failed.errors.assert_contains("time.Now in an unknown way");
}

/// A C project runs no code of its own while it is built.
#[test]
fn python_does_not_import_ziglang_from_the_project() {
    if !is_installed(&["python3"]) {
        return;
    }
    let workshop = Workshop::with(&[]);
    workshop.created("token", "c");
    let attack = "open('attacked', 'w')";
    workshop.write("token/ziglang.py", attack);
    let path = env::join_paths(program_folders()).unwrap();
    let probed = workshop.path("probed");
    let python = format!(": >{probed:?}\nPATH={path:?} exec python3 \"$@\"");
    workshop.script("python3", &python);
    let built = workshop.with_scripts();
    built.errors.assert_lacks("ziglang.__path__");
    assert!(probed.exists());
    assert!(!workshop.path("token/attacked").exists());

    // Python finds the compiler in this package.
    workshop.script("zig", "exit 9");
    let package = workshop.path("package");
    fs::rename(workshop.path("bin"), &package).unwrap();
    workshop.script("python3", &format!("echo {package:?}"));
    let failed = workshop.with_scripts().expect(1);
    failed.errors.assert_contains("zig failed (exit status: 9)");
}

#[test]
fn names_of_c_sources_are_not_options_of_the_compiler() {
    if !has_tools("c") {
        return;
    }
    let workshop = Workshop::with(&[]);
    workshop.created("token", "c");
    workshop.write("token/.c", "-o ../attacked");
    for name in ["@.c", "-DNDEBUG=.c"] {
        let file = workshop.path("token").join(name);
        fs::write(&file, "").unwrap();
        let failed = workshop.with_toolchains("build token").expect(1);
        let expected = format!("the C source {name} must not begin with @ or -");
        failed.errors.assert_contains(&expected);
        fs::remove_file(file).unwrap();
    }
    assert!(!workshop.path("attacked").exists());
}

#[test]
fn links_in_wit_are_followed_only_to_wit_and_to_a_limited_depth() {
    let workshop = Workshop::with(&[]);
    workshop.created("token", "python");
    workshop.script("componentize-py", "exit 0");
    let wit = workshop.path("token/wit");
    for again in ["a", "b"] {
        symlink(".", wit.join(again)).unwrap();
    }
    let errors = workshop.with_scripts().expect(1).errors;
    errors.assert_contains("could not read token/generated/built.wasm");
    let copied = workshop.path("token/generated/wit");
    assert!(copied.join("a/b/generator.wit").is_file());
    assert!(!copied.join("a/b/a").exists());

    fs::create_dir(workshop.path("secrets")).unwrap();
    workshop.write("secrets/key", "hunter2 {");
    symlink("key", workshop.path("secrets/key.wit")).unwrap();
    for (target, refused) in [
        ("../../secrets", "/link.wit/key.wit"),
        ("../../secrets/key", "/link.wit"),
        ("/dev/null", "/link.wit"),
    ] {
        let link = wit.join("link.wit");
        symlink(target, &link).unwrap();
        let errors = workshop.with_scripts().expect(1).errors;
        errors.assert_contains(&format!("{refused} is not a regular file"));
        errors.assert_lacks("hunter2");
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn component_is_not_written_through_a_link() {
    let workshop = Workshop::with(&[]);
    workshop.built("linking", "rust");
    let component = workshop.path("linking/linking.wasm");
    workshop.write("kept", "kept");
    let kept = workshop.path("kept");
    let mode = |file: &Path| fs::metadata(file).unwrap().mode();
    assert_eq!(mode(&component), mode(&kept));
    for (output, reason) in [
        ("absent/a.wasm", "its folder does not exist"),
        ("linking", "it is a folder; name a file"),
    ] {
        let failed = workshop.with_toolchains(&["build", "linking", "--output", output]);
        let expected = format!("could not write {output}: {reason}");
        failed.expect(1).errors.assert_contains(&expected);
    }
    assert!(!workshop.path("absent").exists());

    fs::remove_file(&component).unwrap();
    symlink("../kept", &component).unwrap();
    let failed = workshop.with_toolchains("build linking").expect(1);
    let expected = "could not write linking/linking.wasm: it is not a regular file";
    failed.errors.assert_contains(expected);
    assert_eq!(fs::read(&kept).unwrap(), b"kept");
}

/// If the compiler lacks the target, only the missing target is reported.
#[test]
fn missing_target_is_reported_with_installation_instructions() {
    let workshop = Workshop::with(&[]);
    workshop.created("token", "rust");
    workshop.script("cargo", "exit 101");
    workshop.script("rustc", "echo /no/such/folder");
    let remedy = "rustup target add wasm32-unknown-unknown";
    let failed = workshop.with_scripts().expect(1);
    failed.errors.assert_contains(remedy);
}

#[test]
fn compiler_errors_are_printed() {
    let workshop = Workshop::with(&[]);
    for (language, file) in [("rust", "src/lib.rs"), ("c", "plugin.c")] {
        if !has_tools(language) {
            continue;
        }
        let name = format!("wrong-{language}");
        workshop.created(&name, language);
        let component = format!("{name}/{name}.wasm");
        let before = "the component of an earlier build";
        workshop.write(&component, before);
        let source = workshop.path(&name).join(file);
        let text = fs::read_to_string(&source).unwrap();
        fs::write(&source, format!("{text}\nint mistaken = unheard_of;\n")).unwrap();
        let failed = workshop.with_toolchains(&["build", &name]).expect(1);
        failed.errors.assert_contains("mistaken");
        failed.errors.assert_contains("failed (exit status: ");
        let after = fs::read_to_string(workshop.path(&component));
        assert_eq!(after.unwrap(), before);
    }
}

#[test]
fn errors_in_the_project_are_reported() {
    let workshop = Workshop::with(&[]);
    workshop.created("token", "js");
    workshop.script("jco", "exit 9");
    let fails = |reported| {
        let failed = workshop.with_scripts().expect(1);
        failed.errors.assert_contains(reported);
    };
    fails("jco failed (exit status: 9)");
    workshop.write("token/package.json", "{}");
    fails("whose field `main`");
    workshop.write("token/wit/plugin.wit", "world other {}");
    workshop.write("token/wit/generator.wit", "package a:b;");
    fails("neither a world `plugin`");
    workshop.write("token/wit/plugin.wit", "world plugin { include nothing; }");
    fails("nothing");
    fs::remove_dir_all(workshop.path("token/wit")).unwrap();
    fails("token/wit does not exist");
}

/// Returns the imported interfaces with functions, without versions and without the interfaces of generators, which some tools
/// import even if they are unused.
fn imports(component: &Path) -> Vec<String> {
    let bytes = fs::read(component).unwrap();
    let DecodedWasm::Component(resolve, world) = wit_component::decode(&bytes).unwrap() else {
        unreachable!("{component:?} is not a component");
    };
    let imports = resolve.worlds[world].imports.iter();
    let with_functions = imports.filter(|(_, item)| match item {
        wit_parser::WorldItem::Interface { id, .. } => {
            !resolve.interfaces[*id].functions.is_empty()
        }
        _ => true,
    });
    with_functions
        .map(|(key, _)| {
            let name = resolve.name_world_key(key);
            name.split('@').next().unwrap().to_owned()
        })
        .filter(|name| !name.starts_with("keywright:generator/"))
        .collect()
}

/// Returns whether projects in this language can be built. Otherwise, prints that their tests are skipped.
pub(super) fn has_tools(language: &str) -> bool {
    let mut languages = LANGUAGES.iter();
    let (_, programs) = languages.find(|(name, _)| *name == language).unwrap();
    let has_tools = is_installed(programs);
    if !has_tools {
        let programs = programs.join(" or ");
        print_message(&format!("skipped: {language}: {programs} is missing"));
    }
    has_tools
}

/// Returns whether one of these programs is installed. In CI it must be.
fn is_installed(programs: &[&str]) -> bool {
    let is_in = |folder: PathBuf| {
        programs
            .iter()
            .any(|program| folder.join(program).is_file())
    };
    let is_installed = program_folders().any(is_in);
    assert!(
        is_installed || env::var_os("CI").is_none(),
        "{programs:?}: one of them is required in CI"
    );
    is_installed
}

/// Returns the search path: the toolchains that `cargo xtask` installs, then the `PATH`.
fn program_folders() -> impl Iterator<Item = PathBuf> {
    let installed = workspace().join("target/toolchains/bin");
    let path: OsString = env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = env::split_paths(&path).collect();
    std::iter::once(installed).chain(on_path)
}

#[test]
fn output_lists_the_next_commands_in_each_language() {
    let workshop = Workshop::with(&[]);
    for (language, needed) in [
        ("rust", "rustup target add wasm32-unknown-unknown"),
        ("c", "pip install ziglang"),
        ("js", "npm install"),
        ("python", "pip install -r requirements.txt"),
        ("go", "cd in-go"),
    ] {
        let name = format!("in-{language}");
        let created = workshop.created(&name, language);
        for expected in [
            needed,
            &format!("cd {name}"),
            "keywright plugin build",
            &format!("keywright plugin test {name}.wasm"),
        ] {
            created.output.assert_contains(expected);
        }
        let folder = workshop.path(&name);
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        readme.assert_contains(&format!("--type {name}"));
        let configuration = fs::read_to_string(folder.join("keywright.toml")).unwrap();
        configuration.assert_contains(&format!("[generators.{name}]"));
    }
}

#[test]
fn invalid_name_language_or_kind_is_rejected() {
    let workshop = Workshop::with(&[]);
    let too_long = "a".repeat(64);
    let kinds = "must be generator, issued or resolver";
    for (arguments, reported) in [
        ("Token --lang c", "starting with a letter"),
        ("1a --lang c", "starting with a letter"),
        ("../a --lang c", "starting with a letter"),
        (&format!("{too_long} --lang c"), "1 to 63 characters"),
        ("token --lang cobol", "must be rust, c, js, python or go"),
        ("token --lang c --kind signer", kinds),
    ] {
        workshop.fails(&format!("new {arguments}"), 2, reported);
    }
    assert_eq!(fs::read_dir(workshop.0.path()).unwrap().count(), 0);
}

#[test]
fn existing_folder_is_not_overwritten() {
    let workshop = Workshop::with(&[]);
    workshop.created("token", "python");
    workshop.write("token/plugin.py", "mine");
    for language in ["c", "python"] {
        let line = format!("new token --lang {language}");
        workshop.fails(&line, 1, "creating the project: token already exists");
    }
    let source = fs::read(workshop.path("token/plugin.py"));
    assert_eq!(source.unwrap(), b"mine");
    assert!(!workshop.path("token/plugin.c").exists());
}
