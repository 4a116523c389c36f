//! Creates projects from the embedded files of `templates/`. A project is a folder with a small but complete generator, and each
//! template is itself a project.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::language::Language;

/// Creates a project in a new subfolder of `parent`, and returns the path of the subfolder.
///
/// # Errors
/// If the path already exists, or a file can't be written. An existing path is not changed.
pub fn begin(
    parent: &Path,
    name: &ProjectName,
    language: Language,
) -> Result<PathBuf, NewProjectError> {
    let folder = parent.join(&name.0);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| NewProjectError::NotWritten { path, source }
    };
    match fs::create_dir(&folder) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            return Err(NewProjectError::Exists { folder });
        }
        created => created.map_err(failed(&folder))?,
    }
    for (path, text) in template_files(language) {
        let path = folder.join(path.replace(TEMPLATE_NAME, &name.0));
        if let Some(within) = path.parent() {
            fs::create_dir_all(within).map_err(failed(within))?;
        }
        let text = text.replace(TEMPLATE_NAME, &name.0);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(folder)
}

/// The name of a project and of the credential type that it generates: 1 to 63 characters of `a-z`, `0-9` and `-`, starting
/// with a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

impl FromStr for ProjectName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_of_type = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
        let is_type = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= NAME_CHARACTERS_MAX
            && name.chars().all(is_of_type);
        is_type.then(|| Self(name.to_owned())).ok_or(NameError)
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The maximum length of a credential type.
const NAME_CHARACTERS_MAX: usize = 63;

/// A project name that is not a valid credential type.
#[derive(Debug, thiserror::Error)]
#[error(
    "must be a credential type: 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9 and -, starting with a letter"
)]
pub struct NameError;

/// Why a project was not created.
#[derive(Debug, thiserror::Error)]
pub enum NewProjectError {
    /// The path exists already.
    #[error("{} already exists; choose another name", folder.display())]
    Exists {
        /// The path.
        folder: PathBuf,
    },
    /// A file or folder can't be written.
    #[error("could not write {}", path.display())]
    NotWritten {
        /// The path of the file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Returns the files of a language's template.
fn template_files(language: Language) -> impl Iterator<Item = File> {
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

/// The project name in the templates, which is replaced in new projects.
const TEMPLATE_NAME: &str = "sample-token";

const C: &[File] = &[
    (".gitignore", include_str!("../templates/c/.gitignore")),
    ("README.md", include_str!("../templates/c/README.md")),
    ("plugin.c", include_str!("../templates/c/plugin.c")),
    VECTORS,
];

const GO: &[File] = &[
    (".gitignore", include_str!("../templates/go/.gitignore")),
    ("README.md", include_str!("../templates/go/README.md")),
    ("go.mod", include_str!("../templates/go/go.mod")),
    ("go.sum", include_str!("../templates/go/go.sum")),
    ("plugin.go", include_str!("../templates/go/plugin.go")),
    (
        "sample-token.vectors.json",
        include_str!("../templates/go/sample-token.vectors.json"),
    ),
];

const JAVASCRIPT: &[File] = &[
    (".gitignore", include_str!("../templates/js/.gitignore")),
    ("README.md", include_str!("../templates/js/README.md")),
    ("package.json", include_str!("../templates/js/package.json")),
    ("plugin.js", include_str!("../templates/js/plugin.js")),
    VECTORS,
];

const PYTHON: &[File] = &[
    (".gitignore", include_str!("../templates/python/.gitignore")),
    ("README.md", include_str!("../templates/python/README.md")),
    ("plugin.py", include_str!("../templates/python/plugin.py")),
    (
        "requirements.txt",
        include_str!("../templates/python/requirements.txt"),
    ),
    VECTORS,
];

const RUST: &[File] = &[
    (".gitignore", include_str!("../templates/rust/.gitignore")),
    ("Cargo.lock", include_str!("../templates/rust/Cargo.lock")),
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml")),
    ("README.md", include_str!("../templates/rust/README.md")),
    ("src/lib.rs", include_str!("../templates/rust/src/lib.rs")),
    VECTORS,
];

/// The files for all languages.
const COMMON: &[File] = &[
    (
        "keywright.toml",
        include_str!("../templates/common/keywright.toml"),
    ),
    (
        "wit/plugin.wit",
        include_str!("../templates/wit/plugin.wit"),
    ),
    (
        "wit/generator.wit",
        include_str!("../../../wit/generator/generator.wit"),
    ),
    (
        "wit/deps/signing/signing.wit",
        include_str!("../../../wit/signing/signing.wit"),
    ),
    (
        "wit/deps/wasi-random/random.wit",
        include_str!("../../../wit/deps/wasi-random/random.wit"),
    ),
];

/// The test vectors for languages whose runtime draws no random bytes itself.
const VECTORS: File = (
    "sample-token.vectors.json",
    include_str!("../templates/common/sample-token.vectors.json"),
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn project_name_must_be_a_credential_type() {
        let longest = "a".repeat(NAME_CHARACTERS_MAX);
        for name in ["a", "a-1", "api-key", &longest] {
            assert_eq!(name.parse::<ProjectName>().unwrap().to_string(), name);
        }
        let too_long = format!("{longest}a");
        for name in [
            "", "1a", "-a", "A", "a_b", "a/b", "..", "a b", "ä", &too_long,
        ] {
            assert!(name.parse::<ProjectName>().is_err(), "{name}");
        }
    }

    #[test]
    fn template_name_is_replaced_everywhere() {
        let parent = tempfile::tempdir().unwrap();
        for language in Language::ALL {
            let name: ProjectName = format!("in-{language}").parse().unwrap();
            let folder = begin(parent.path(), &name, language).unwrap();
            assert_eq!(Language::of_project(&folder).unwrap(), language);
            let mut folders = vec![folder];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    assert!(!path.to_str().unwrap().contains(TEMPLATE_NAME), "{path:?}");
                    if path.is_dir() {
                        folders.push(path);
                    } else {
                        let text = fs::read_to_string(&path).unwrap();
                        assert!(!text.contains(TEMPLATE_NAME), "{path:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn existing_file_is_not_changed() {
        let parent = tempfile::tempdir().unwrap();
        let name: ProjectName = "a".parse().unwrap();
        fs::write(parent.path().join("a"), "precious").unwrap();
        let refused = begin(parent.path(), &name, Language::C);
        assert!(matches!(refused, Err(NewProjectError::Exists { .. })));
        assert_eq!(fs::read(parent.path().join("a")).unwrap(), b"precious");
    }

    #[test]
    fn templates_contain_all_wit_for_generators() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut expected = BTreeSet::new();
        let mut folders = vec![wit];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap();
                if path.is_dir() && name != "interpolation" && name != "released" {
                    folders.push(path);
                } else if path.extension() == Some("wit".as_ref()) {
                    expected.insert(fs::read_to_string(path).unwrap());
                }
            }
        }
        let copied = COMMON
            .iter()
            .filter(|(path, _)| path.starts_with("wit/") && *path != "wit/plugin.wit");
        let copied: BTreeSet<String> = copied.map(|(_, text)| (*text).to_owned()).collect();
        assert_eq!(copied, expected);
    }

    #[test]
    fn go_template_requires_the_module_of_its_bindings() {
        let required = wit_bindgen_go::remote_pkg_version();
        for file in ["go.mod", "go.sum"] {
            let text = template_files(Language::Go).find(|(path, _)| *path == file);
            let (_, text) = text.unwrap();
            assert!(text.contains(&required), "{file}: {text}");
        }
    }
}
