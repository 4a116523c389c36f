//! Creates projects: a folder with a complete but small generator.

mod template;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::language::Language;

/// Creates a project in a new subfolder of `parent`, and returns the path of the subfolder.
///
/// # Errors
/// If the path exists already (it is not changed), or can't be written.
pub fn begin(
    parent: &Path,
    name: &ProjectName,
    language: Language,
) -> Result<PathBuf, BeginRefused> {
    let folder = parent.join(&name.0);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BeginRefused::NotWritten { path, source }
    };
    match fs::create_dir(&folder) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            return Err(BeginRefused::Exists { folder });
        }
        made => made.map_err(failed(&folder))?,
    }
    for (path, text) in template::files(language) {
        let path = folder.join(path.replace(template::NAME, &name.0));
        if let Some(within) = path.parent() {
            fs::create_dir_all(within).map_err(failed(within))?;
        }
        let text = text.replace(template::NAME, &name.0);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(folder)
}

/// The name of a project, which is also the credential type that it generates: 1 to 63 characters of `a-z`, `0-9` and `-`,
/// starting with a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName(String);

impl FromStr for ProjectName {
    type Err = NameMalformed;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_of_type = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-');
        let is_type = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= NAME_CHARACTERS_MAX
            && name.chars().all(is_of_type);
        is_type.then(|| Self(name.to_owned())).ok_or(NameMalformed)
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
pub struct NameMalformed;

/// Why a project was not created.
#[derive(Debug, thiserror::Error)]
pub enum BeginRefused {
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

#[cfg(test)]
mod tests {
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
                    assert!(!path.to_str().unwrap().contains(template::NAME), "{path:?}");
                    if path.is_dir() {
                        folders.push(path);
                    } else {
                        let text = fs::read_to_string(&path).unwrap();
                        assert!(!text.contains(template::NAME), "{path:?}");
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
        assert!(matches!(refused, Err(BeginRefused::Exists { .. })));
        assert_eq!(fs::read(parent.path().join("a")).unwrap(), b"precious");
    }
}
