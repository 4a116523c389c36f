//! The embedded files of `templates/`. Each template is itself a project.

use crate::language::Language;

/// The project name in the templates.
pub(super) const NAME: &str = "sample-token";

/// Returns the files of a language's template.
pub(super) fn files(language: Language) -> impl Iterator<Item = File> {
    let own = match language {
        Language::C => C,
        Language::Go => GO,
        Language::JavaScript => JAVASCRIPT,
        Language::Python => PYTHON,
        Language::Rust => RUST,
    };
    own.iter().chain(COMMON).copied()
}

/// The path and the text of a file.
type File = (&'static str, &'static str);

const C: &[File] = &[
    (".gitignore", include_str!("../../templates/c/.gitignore")),
    ("README.md", include_str!("../../templates/c/README.md")),
    ("plugin.c", include_str!("../../templates/c/plugin.c")),
    VECTORS,
];

const GO: &[File] = &[
    (".gitignore", include_str!("../../templates/go/.gitignore")),
    ("README.md", include_str!("../../templates/go/README.md")),
    ("go.mod", include_str!("../../templates/go/go.mod")),
    ("go.sum", include_str!("../../templates/go/go.sum")),
    ("plugin.go", include_str!("../../templates/go/plugin.go")),
    (
        "sample-token.vectors.json",
        include_str!("../../templates/go/sample-token.vectors.json"),
    ),
];

const JAVASCRIPT: &[File] = &[
    (".gitignore", include_str!("../../templates/js/.gitignore")),
    ("README.md", include_str!("../../templates/js/README.md")),
    (
        "package.json",
        include_str!("../../templates/js/package.json"),
    ),
    ("plugin.js", include_str!("../../templates/js/plugin.js")),
    VECTORS,
];

const PYTHON: &[File] = &[
    (
        ".gitignore",
        include_str!("../../templates/python/.gitignore"),
    ),
    (
        "README.md",
        include_str!("../../templates/python/README.md"),
    ),
    (
        "plugin.py",
        include_str!("../../templates/python/plugin.py"),
    ),
    (
        "requirements.txt",
        include_str!("../../templates/python/requirements.txt"),
    ),
    VECTORS,
];

const RUST: &[File] = &[
    (
        ".gitignore",
        include_str!("../../templates/rust/.gitignore"),
    ),
    (
        "Cargo.lock",
        include_str!("../../templates/rust/Cargo.lock"),
    ),
    (
        "Cargo.toml",
        include_str!("../../templates/rust/Cargo.toml"),
    ),
    ("README.md", include_str!("../../templates/rust/README.md")),
    (
        "src/lib.rs",
        include_str!("../../templates/rust/src/lib.rs"),
    ),
    VECTORS,
];

/// The files for all languages.
const COMMON: &[File] = &[
    (
        "keywright.toml",
        include_str!("../../templates/common/keywright.toml"),
    ),
    (
        "wit/plugin.wit",
        include_str!("../../templates/wit/plugin.wit"),
    ),
    (
        "wit/generator.wit",
        include_str!("../../../../wit/generator/generator.wit"),
    ),
    (
        "wit/deps/signing/signing.wit",
        include_str!("../../../../wit/signing/signing.wit"),
    ),
    (
        "wit/deps/wasi-random/random.wit",
        include_str!("../../../../wit/deps/wasi-random/random.wit"),
    ),
];

/// The test vectors for languages whose runtime draws no random bytes itself.
const VECTORS: File = (
    "sample-token.vectors.json",
    include_str!("../../templates/common/sample-token.vectors.json"),
);

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn templates_contain_all_wit_for_generators() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut there = BTreeSet::new();
        let mut folders = vec![wit];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap();
                if path.is_dir() && name != "interpolation" && name != "released" {
                    folders.push(path);
                } else if path.extension() == Some("wit".as_ref()) {
                    there.insert(fs::read_to_string(path).unwrap());
                }
            }
        }
        let copied = COMMON
            .iter()
            .filter(|(path, _)| path.starts_with("wit/") && *path != "wit/plugin.wit");
        let copied: BTreeSet<String> = copied.map(|(_, text)| (*text).to_owned()).collect();
        assert_eq!(copied, there);
    }

    #[test]
    fn go_template_requires_the_module_of_its_bindings() {
        let required = wit_bindgen_go::remote_pkg_version();
        for file in ["go.mod", "go.sum"] {
            let text = files(Language::Go).find(|(path, _)| *path == file);
            let (_, text) = text.unwrap();
            assert!(text.contains(&required), "{file}: {text}");
        }
    }
}
