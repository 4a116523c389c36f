//! Creates projects from the embedded files of `templates/`. A project is a folder with a small but complete plugin.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    error::ProjectError,
    language::{Kind, Language},
};

/// Returns the paths in `templates/` with the texts of the files.
macro_rules! templates {
    ($($folder:literal: $($file:literal),+;)+) => {
        &[$($((
            concat!($folder, "/", $file),
            include_str!(concat!("../templates/", $folder, "/", $file)),
        )),+),+]
    };
}

/// Creates a project in a new subfolder of `parent`, and returns the path of the subfolder.
///
/// # Errors
/// If the language can't have this kind, the path already exists, or a file can't be written. An existing path is not changed.
pub fn create(
    parent: &Path,
    name: &ProjectName,
    kind: Kind,
    language: Language,
) -> Result<PathBuf, ProjectError> {
    // A test in `tests/plugins/author/kinds.rs` shows whether JavaScript still can't have issued generators.
    if (kind, language) == (Kind::Issued, Language::JavaScript) {
        return Err(ProjectError::new(
            "there is no template for --kind issued in js: components of jco's QuickJS do not return the CA that they borrow from \
             the host; use --lang rust, c, python or go",
        ));
    }
    let folder = parent.join(&name.0);
    fs::create_dir(&folder).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => ProjectError::new(format!(
            "{} already exists; choose another name",
            folder.display()
        )),
        _ => ProjectError::file("write", &folder, cause),
    })?;
    for (path, text) in template_files(kind, language) {
        let path = folder.join(path.replace(TEMPLATE_NAME, &name.0));
        if let Some(within) = path.parent() {
            fs::create_dir_all(within)
                .map_err(|cause| ProjectError::file("write", within, cause))?;
        }
        let text = text.replace(TEMPLATE_NAME, &name.0);
        fs::write(&path, text).map_err(|cause| ProjectError::file("write", &path, cause))?;
    }
    Ok(folder)
}

/// The name of a project and of the credential type that it generates: 1 to 63 characters of `a-z`, `0-9` and `-`, starting
/// with a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

impl FromStr for ProjectName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_of_type = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
        let is_type = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= NAME_CHARACTERS_MAX
            && name.chars().all(is_of_type);
        is_type.then(|| Self(name.to_owned())).ok_or_else(|| {
            format!(
                "must be a credential type: 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9 and -, starting with a letter"
            )
        })
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The maximum length of a credential type.
const NAME_CHARACTERS_MAX: usize = 63;

/// Returns the files of a project, with the project name of the templates. Omits files that no template has for the language and
/// the kind.
fn template_files(kind: Kind, language: Language) -> Vec<(&'static str, String)> {
    let texts = Texts { kind, language };
    let wit = match kind {
        Kind::Generator | Kind::Issued => &GENERATOR_WIT[..],
        Kind::Resolver => &RESOLVER_WIT,
    };
    let source = (language.source(), &[SOURCE][..]);
    let files = [source].into_iter().chain(FILES);
    let files = files.filter_map(|(path, templates)| {
        let parts = templates.iter().filter_map(|name| texts.template(name));
        let text = parts.collect::<String>();
        (!text.is_empty()).then(|| (path, texts.fill(&text)))
    });
    files
        .chain(wit.iter().map(|(path, text)| (*path, (*text).to_owned())))
        .collect()
}

/// The texts that differ between projects, for the placeholders `{{name}}` in `templates/common/`.
struct Texts {
    kind: Kind,
    language: Language,
}

impl Texts {
    /// Returns the text of a template. Replaces the placeholders in its path.
    fn template(&self, path: &str) -> Option<&'static str> {
        let role = match self.kind {
            Kind::Generator | Kind::Issued => "generator",
            Kind::Resolver => "resolver",
        };
        let extension = self.language.source().rsplit('.').next();
        let path = path
            .replace("EXTENSION", extension.unwrap_or_default())
            .replace("LANGUAGE", &self.language.to_string())
            .replace("KIND", &self.kind.to_string())
            .replace("ROLE", role);
        let mut templates = TEMPLATES.iter();
        let found = templates.find(|(known, _)| *known == path);
        found.map(|(_, text)| *text)
    }

    /// Replaces the placeholders in a text.
    fn fill(&self, text: &str) -> String {
        let is_go = self.language == Language::Go;
        let grants = match self.kind {
            Kind::Generator => "\"random\"",
            Kind::Issued => "\"random\", \"signing\"",
            Kind::Resolver if is_go => "\"random\"",
            Kind::Resolver => "",
        };
        let requirements = self.template("LANGUAGE/requirements.md");
        let requirements = requirements.unwrap_or_default();
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
        let [value, public_key, key, public_key_of_key, derived] = match (self.kind, self.language)
        {
            (Kind::Issued, Language::C) => OF_CALLERS_KEY,
            _ => [OWN_KEY, "", "", "", ""],
        };
        [
            ("{{world}}", world),
            ("{{grants}}", grants),
            ("{{value}}", value),
            ("{{public_key}}", public_key),
            ("{{key}}", key),
            ("{{public_key_of_key}}", public_key_of_key),
            ("{{derived}}", derived),
            ("{{runtime}}", runtime),
            ("{{randomness}}", randomness),
            ("{{language}}", self.language_title()),
            ("{{source}}", self.language.source()),
            ("{{function}}", self.function()),
            ("{{files}}", &files),
            ("{{requirements}}", requirements),
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
}

/// The project name in the templates, which is replaced in new projects.
const TEMPLATE_NAME: &str = "sample-token";

/// The values of issued generators with their own keys.
const OWN_KEY: &str =
    "an Ed25519 key, with a certificate for a host name that a CA of the server signs";

/// Texts on issued generators in C, which certify a key of the caller, because C has no standard library for keys.
const OF_CALLERS_KEY: [&str; 5] = [
    "a certificate for a host name and a public key of the caller, which a CA of the server signs",
    ", \"public_key\": \"MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"",
    "openssl genpkey -algorithm ed25519 -out key.pem\n",
    " \\\n    --param public_key=\"$(openssl pkey -in key.pem -pubout -outform DER | base64 --wrap 0)\"",
    "derived = true  # a value has no secret\n",
];

/// The random bytes that Go's runtime draws when it starts, in test vectors.
const GO_RANDOM: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const GO_RANDOMNESS: &str = "\nGo's runtime draws 32 random bytes whenever it starts. So `random` in the vectors starts with 32 bytes \
     each for `describe`,\n`describe-settings` and `generate`.\n";

/// The template of the source.
const SOURCE: &str = "LANGUAGE/KIND.EXTENSION";

/// The paths of the files in new projects, and the templates whose texts are joined. In the paths of templates, `ROLE` is the role of
/// the kind: an issued generator is a generator.
const FILES: [(&str, &[&str]); 13] = [
    (".gitignore", &["common/.gitignore"]),
    ("README.md", &["common/KIND.md"]),
    ("keywright.toml", &["common/ROLE.toml"]),
    ("wit/plugin.wit", &["common/ROLE.wit"]),
    // The certificates of the languages differ, for example in the order of extensions.
    (
        "sample-token.vectors.json",
        &["common/KIND.vectors.json", "LANGUAGE/KIND.vectors.json"],
    ),
    // The packages of all kinds. cargo removes those that only another kind needs.
    ("Cargo.lock", &["LANGUAGE/Cargo.lock"]),
    ("Cargo.toml", &["LANGUAGE/Cargo.toml", "LANGUAGE/KIND.toml"]),
    ("failures.go", &["LANGUAGE/ROLE.failures.go"]),
    ("go.mod", &["LANGUAGE/go.mod"]),
    ("go.sum", &["LANGUAGE/go.sum"]),
    ("package.json", &["LANGUAGE/package.json"]),
    (
        "requirements.txt",
        &[
            "LANGUAGE/requirements.txt",
            "LANGUAGE/KIND.requirements.txt",
        ],
    ),
    ("text-encoding.js", &["LANGUAGE/text-encoding.js"]),
];

const TEMPLATES: &[(&str, &str)] = templates! {
    "c": "generator.c", "issued.c", "issued.vectors.json", "requirements.md", "resolver.c";
    "common": ".gitignore", "generator.md", "generator.toml", "generator.vectors.json", "generator.wit",
        "issued.md", "resolver.md", "resolver.toml", "resolver.vectors.json", "resolver.wit";
    "go": "generator.failures.go", "generator.go", "go.mod", "go.sum", "issued.go", "issued.vectors.json",
        "requirements.md", "resolver.go";
    "js": "generator.js", "package.json", "requirements.md", "resolver.js", "text-encoding.js";
    "python": "generator.py", "issued.py", "issued.requirements.txt", "issued.vectors.json", "requirements.md",
        "requirements.txt", "resolver.py";
    "rust": "Cargo.lock", "Cargo.toml", "generator.rs", "issued.rs", "issued.toml", "issued.vectors.json",
        "requirements.md", "resolver.rs";
};

const GENERATOR: &str = include_str!("../../../wit/generator/generator.wit");
const SIGNING: &str = include_str!("../../../wit/signing/signing.wit");
const RANDOM: &str = include_str!("../../../wit/deps/wasi-random/random.wit");
const INTERPOLATION: &str = include_str!("../../../wit/interpolation/interpolation.wit");

const GENERATOR_WIT: [(&str, &str); 3] = [
    ("wit/generator.wit", GENERATOR),
    ("wit/deps/signing/signing.wit", SIGNING),
    ("wit/deps/wasi-random/random.wit", RANDOM),
];

const RESOLVER_WIT: [(&str, &str); 4] = [
    ("wit/interpolation.wit", INTERPOLATION),
    ("wit/deps/generator/generator.wit", GENERATOR),
    ("wit/deps/signing/signing.wit", SIGNING),
    ("wit/deps/wasi-random/random.wit", RANDOM),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::VariantArray;

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
        for &kind in Kind::VARIANTS {
            for &language in Language::VARIANTS {
                let name: ProjectName = format!("{kind}-in-{language}").parse().unwrap();
                let Ok(folder) = create(parent.path(), &name, kind, language) else {
                    assert_eq!((kind, language), (Kind::Issued, Language::JavaScript));
                    continue;
                };
                assert_eq!(Language::of_project(&folder).unwrap(), language);
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
                        for placeholder in [
                            TEMPLATE_NAME,
                            "{{world",
                            "{{d",
                            "{{f",
                            "{{g",
                            "{{k",
                            "{{l",
                            "{{p",
                            "{{r",
                            "{{s",
                            "{{v",
                        ] {
                            assert!(!text.contains(placeholder), "{path:?}: {placeholder}");
                        }
                    }
                }
            }
        }
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
        for &kind in Kind::VARIANTS {
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
