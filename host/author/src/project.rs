//! Creates projects from the embedded files of `templates/`. A project is a folder with a small but complete plugin.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::language::{Kind, Language};

/// Creates a project in a new subfolder of `parent`, and returns the path of the subfolder.
///
/// # Errors
/// If there is no template of this kind in this language, the path already exists, or a file can't be written. An existing path is
/// not changed.
pub fn begin(
    parent: &Path,
    name: &ProjectName,
    kind: Kind,
    language: Language,
) -> Result<PathBuf, NewProjectError> {
    if !kind.languages().contains(&language) {
        return Err(NewProjectError::KindUnsupported { kind, language });
    }
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
    for (path, text) in template_files(kind, language) {
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

/// The reason why a project was not created.
#[derive(Debug, thiserror::Error)]
pub enum NewProjectError {
    /// The path exists already.
    #[error("{} already exists; choose another name", folder.display())]
    Exists {
        /// The path.
        folder: PathBuf,
    },
    /// There is no template of this kind in this language.
    #[error("there is no template for --kind {kind} in {language}; use --lang {}", kind.language_names())]
    KindUnsupported {
        /// The kind.
        kind: Kind,
        /// The language.
        language: Language,
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

/// Returns the files of a project, with the project name of the templates.
fn template_files(kind: Kind, language: Language) -> Vec<(&'static str, String)> {
    let source = match (kind, language) {
        (Kind::Generator, Language::C) => include_str!("../templates/c/generator.c"),
        (Kind::Generator, Language::Go) => include_str!("../templates/go/generator.go"),
        (Kind::Issued, Language::Go) => include_str!("../templates/go/issued.go"),
        (Kind::Resolver, Language::Go) => include_str!("../templates/go/resolver.go"),
        (Kind::Generator, Language::JavaScript) => include_str!("../templates/js/generator.js"),
        (Kind::Resolver, Language::JavaScript) => include_str!("../templates/js/resolver.js"),
        (Kind::Generator, Language::Python) => include_str!("../templates/python/generator.py"),
        (Kind::Resolver, Language::Python) => include_str!("../templates/python/resolver.py"),
        (Kind::Generator, Language::Rust) => include_str!("../templates/rust/generator.rs"),
        (Kind::Issued, Language::Rust) => include_str!("../templates/rust/issued.rs"),
        (Kind::Resolver, Language::Rust) => include_str!("../templates/rust/resolver.rs"),
        _ => return Vec::new(),
    };
    let texts = Texts { kind, language };
    let mut files = vec![
        (language.source(), source.to_owned()),
        (".gitignore", GITIGNORE.to_owned()),
    ];
    files.extend(language_files(kind, language));
    let kind_files: &[File] = match kind {
        Kind::Generator => &GENERATOR,
        Kind::Issued => &ISSUED,
        Kind::Resolver => &RESOLVER,
    };
    // The certificates of the languages differ, for example in the order of extensions.
    let issued_vectors = match (kind, language) {
        (Kind::Issued, Language::Go) => Some(include_str!("../templates/go/issued.vectors.json")),
        (Kind::Issued, Language::Rust) => {
            Some(include_str!("../templates/rust/issued.vectors.json"))
        }
        _ => None,
    };
    files.extend(issued_vectors.map(|vectors| ("sample-token.vectors.json", vectors.to_owned())));
    files.extend(
        kind_files
            .iter()
            .map(|(path, text)| (*path, texts.fill(text))),
    );
    files
}

/// Returns the files for the tools of a language.
fn language_files(kind: Kind, language: Language) -> Vec<(&'static str, String)> {
    let files: &[File] = match language {
        Language::C => &[],
        Language::Go => &[
            ("go.mod", include_str!("../templates/go/go.mod")),
            ("go.sum", include_str!("../templates/go/go.sum")),
            ("failures.go", include_str!("../templates/go/failures.go")),
        ],
        Language::JavaScript => &[
            ("package.json", include_str!("../templates/js/package.json")),
            (
                "text-encoding.js",
                include_str!("../templates/js/text-encoding.js"),
            ),
        ],
        Language::Python => &[(
            "requirements.txt",
            include_str!("../templates/python/requirements.txt"),
        )],
        Language::Rust => &[
            ("Cargo.toml", include_str!("../templates/rust/Cargo.toml")),
            // cargo removes the packages that only another kind needs.
            ("Cargo.lock", include_str!("../templates/rust/Cargo.lock")),
        ],
    };
    let is_of_kind = |path: &str| kind != Kind::Resolver || path != "failures.go";
    let files = files.iter().filter(|(path, _)| is_of_kind(path));
    files
        .map(|(path, text)| match (kind, *path) {
            (Kind::Issued, "Cargo.toml") => {
                let added = include_str!("../templates/rust/issued.toml");
                (*path, format!("{text}{added}"))
            }
            _ => (*path, (*text).to_owned()),
        })
        .collect()
}

/// The texts that differ between projects, for the placeholders `{{name}}` in `templates/common/`.
struct Texts {
    kind: Kind,
    language: Language,
}

impl Texts {
    /// Replaces the placeholders in a text.
    fn fill(&self, text: &str) -> String {
        let is_go = self.language == Language::Go;
        let grants = match self.kind {
            Kind::Generator => "\"random\"",
            Kind::Issued => "\"random\", \"signing\"",
            Kind::Resolver if is_go => "\"random\"",
            Kind::Resolver => "",
        };
        let world = match self.kind {
            Kind::Issued => "issued-generator-plugin",
            _ => "generator-plugin",
        };
        let (runtime, randomness) = if is_go {
            (GO_RANDOM, GO_RANDOMNESS)
        } else {
            ("", "")
        };
        let manifest = match self.language {
            Language::C => None,
            Language::Go => Some("go.mod"),
            Language::JavaScript => Some("package.json"),
            Language::Python => Some("requirements.txt"),
            Language::Rust => Some("Cargo.toml"),
        };
        let files = manifest.map_or_else(String::new, |manifest| {
            format!("| `{manifest}` | the dependencies |\n")
        });
        [
            ("{{world}}", world),
            ("{{grants}}", grants),
            ("{{runtime}}", runtime),
            ("{{randomness}}", randomness),
            ("{{language}}", self.language_title()),
            ("{{source}}", self.language.source()),
            ("{{function}}", self.function()),
            ("{{files}}", &files),
            ("{{requirements}}", self.requirements()),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (placeholder, filled)| {
            text.replace(placeholder, filled)
        })
    }

    const fn language_title(&self) -> &'static str {
        match self.language {
            Language::C => "C",
            Language::Go => "Go",
            Language::JavaScript => "JavaScript",
            Language::Python => "Python",
            Language::Rust => "Rust",
        }
    }

    /// Returns the name of the function to edit.
    const fn function(&self) -> &'static str {
        let is_camel_case = matches!(self.language, Language::Go | Language::JavaScript);
        match (self.kind, is_camel_case) {
            (Kind::Resolver, true) => "referencedName",
            (Kind::Resolver, false) => "referenced_name",
            (_, true) => "makeValue",
            (_, false) => "make_value",
        }
    }

    const fn requirements(&self) -> &'static str {
        match self.language {
            Language::C => include_str!("../templates/c/requirements.md"),
            Language::Go => include_str!("../templates/go/requirements.md"),
            Language::JavaScript => include_str!("../templates/js/requirements.md"),
            Language::Python => include_str!("../templates/python/requirements.md"),
            Language::Rust => include_str!("../templates/rust/requirements.md"),
        }
    }
}

/// The path and the text of a file.
type File = (&'static str, &'static str);

/// The project name in the templates, which is replaced in new projects.
const TEMPLATE_NAME: &str = "sample-token";

/// The random bytes that Go's runtime draws when it starts, in test vectors.
const GO_RANDOM: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const GO_RANDOMNESS: &str = "\nGo's runtime draws 32 random bytes whenever it starts. So `random` in the vectors starts with 32 bytes \
     for `describe` and\n32 bytes for `generate`.\n";

const GITIGNORE: &str = include_str!("../templates/common/.gitignore");
const GENERATOR_WIT: &str = include_str!("../../../wit/generator/generator.wit");
const SIGNING_WIT: File = (
    "wit/deps/signing/signing.wit",
    include_str!("../../../wit/signing/signing.wit"),
);
const RANDOM_WIT: File = (
    "wit/deps/wasi-random/random.wit",
    include_str!("../../../wit/deps/wasi-random/random.wit"),
);

const GENERATOR: [File; 7] = [
    (
        "README.md",
        include_str!("../templates/common/generator.md"),
    ),
    (
        "sample-token.vectors.json",
        include_str!("../templates/common/generator.vectors.json"),
    ),
    GENERATOR_CONFIGURATION,
    GENERATOR_WORLD,
    ("wit/generator.wit", GENERATOR_WIT),
    SIGNING_WIT,
    RANDOM_WIT,
];

const ISSUED: [File; 6] = [
    ("README.md", include_str!("../templates/common/issued.md")),
    GENERATOR_CONFIGURATION,
    GENERATOR_WORLD,
    ("wit/generator.wit", GENERATOR_WIT),
    SIGNING_WIT,
    RANDOM_WIT,
];

const GENERATOR_CONFIGURATION: File = (
    "keywright.toml",
    include_str!("../templates/common/generator.toml"),
);
const GENERATOR_WORLD: File = (
    "wit/plugin.wit",
    include_str!("../templates/common/generator.wit"),
);

const RESOLVER: [File; 8] = [
    ("README.md", include_str!("../templates/common/resolver.md")),
    (
        "sample-token.vectors.json",
        include_str!("../templates/common/resolver.vectors.json"),
    ),
    (
        "keywright.toml",
        include_str!("../templates/common/resolver.toml"),
    ),
    (
        "wit/plugin.wit",
        include_str!("../templates/common/resolver.wit"),
    ),
    (
        "wit/interpolation.wit",
        include_str!("../../../wit/interpolation/interpolation.wit"),
    ),
    ("wit/deps/generator/generator.wit", GENERATOR_WIT),
    SIGNING_WIT,
    RANDOM_WIT,
];

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
    fn templates_have_no_placeholders_in_new_projects() {
        let parent = tempfile::tempdir().unwrap();
        for kind in Kind::ALL {
            for language in kind.languages() {
                let name: ProjectName = format!("{kind}-in-{language}").parse().unwrap();
                let folder = begin(parent.path(), &name, kind, *language).unwrap();
                assert_eq!(Language::of_project(&folder).unwrap(), *language);
                let mut folders = vec![folder];
                while let Some(folder) = folders.pop() {
                    for entry in fs::read_dir(folder).unwrap() {
                        let path = entry.unwrap().path();
                        if path.is_dir() {
                            folders.push(path);
                            continue;
                        }
                        assert!(!path.to_str().unwrap().contains(TEMPLATE_NAME), "{path:?}");
                        let text = fs::read_to_string(&path).unwrap();
                        for placeholder in
                            [TEMPLATE_NAME, "{{world", "{{r", "{{f", "{{g", "{{l", "{{s"]
                        {
                            assert!(!text.contains(placeholder), "{path:?}: {placeholder}");
                        }
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
        let refused = begin(parent.path(), &name, Kind::Generator, Language::C);
        assert!(matches!(refused, Err(NewProjectError::Exists { .. })));
        assert_eq!(fs::read(parent.path().join("a")).unwrap(), b"precious");
    }

    #[test]
    fn templates_contain_the_wit_of_their_kind() {
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let mut all = BTreeSet::new();
        let mut folders = vec![wit];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path.file_name().unwrap() != "released" {
                    folders.push(path);
                } else if path.extension() == Some("wit".as_ref()) {
                    all.insert(fs::read_to_string(path).unwrap());
                }
            }
        }
        for kind in Kind::ALL {
            let copied = template_files(kind, Language::Rust).into_iter();
            let copied = copied
                .filter(|(path, _)| path.starts_with("wit/") && *path != "wit/plugin.wit")
                .map(|(_, text)| text);
            let missing: Vec<String> = {
                let copied: BTreeSet<String> = copied.collect();
                all.difference(&copied).cloned().collect()
            };
            let expected = usize::from(kind != Kind::Resolver);
            assert_eq!(missing.len(), expected, "{kind}: {missing:?}");
            let is_interpolation =
                |text: &String| text.contains("package keywright:interpolation@");
            assert!(missing.iter().all(is_interpolation), "{kind}: {missing:?}");
        }
    }

    #[test]
    fn go_template_requires_the_module_of_its_bindings() {
        let required = wit_bindgen_go::remote_pkg_version();
        for file in ["go.mod", "go.sum"] {
            let files = template_files(Kind::Generator, Language::Go);
            let (_, text) = files.iter().find(|(path, _)| *path == file).unwrap();
            assert!(text.contains(&required), "{file}: {text}");
        }
    }
}
