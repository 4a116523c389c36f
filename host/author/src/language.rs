//! The supported languages and kinds of plugin projects.

use std::{fmt, path::Path, str::FromStr};

use crate::error::ProjectError;

/// A programming language for plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// Go, with its standard compiler.
    Go,
    /// JavaScript, interpreted by `QuickJS` inside the component.
    JavaScript,
    /// Python, interpreted by `CPython` inside the component.
    Python,
    /// Rust.
    Rust,
}

impl Language {
    /// All languages, in the order in which help texts list them.
    pub const ALL: [Self; 5] = [
        Self::Rust,
        Self::C,
        Self::JavaScript,
        Self::Python,
        Self::Go,
    ];

    /// Returns the name on the command line, the file that identifies a project, and the source file in new projects.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::C => ("c", "plugin.c", "plugin.c"),
            Self::Go => ("go", "go.mod", "plugin.go"),
            Self::JavaScript => ("js", "package.json", "plugin.js"),
            Self::Python => ("python", "plugin.py", "plugin.py"),
            Self::Rust => ("rust", "Cargo.toml", "src/lib.rs"),
        }
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the file that identifies a project in this language.
    pub const fn mark(self) -> &'static str {
        self.names().1
    }

    /// Returns the path of the source file in new projects.
    pub(crate) const fn source(self) -> &'static str {
        self.names().2
    }

    /// Detects the language of the project in a folder.
    pub(crate) fn of_project(folder: &Path) -> Result<Self, ProjectError> {
        let is_marked = |language: &Self| folder.join(language.mark()).is_file();
        let mut marked = Self::ALL.into_iter().filter(is_marked);
        let is_folder = folder.is_dir();
        let folder = folder.display();
        if !is_folder {
            let what = format!("{folder} is not a folder; name the folder of a project");
            return Err(ProjectError::new(what));
        }
        let language = marked.next().ok_or_else(|| {
            ProjectError::new(format!(
                "{folder} contains no plugin project: there is no Cargo.toml, plugin.c, package.json, plugin.py or go.mod; \
                 create a project with `keywright plugin new`"
            ))
        })?;
        match marked.next() {
            None => Ok(language),
            Some(other) => Err(ProjectError::new(format!(
                "{folder} contains projects in more than one language: it has both {} and {}",
                language.mark(),
                other.mark()
            ))),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.name() == name)
            .ok_or("must be rust, c, js, python or go")
    }
}

/// A kind of plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A generator.
    #[default]
    Generator,
    /// A generator whose values a CA of the server signs.
    Issued,
    /// A resolver.
    Resolver,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Generator, Self::Issued, Self::Resolver];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Issued => "issued",
            Self::Resolver => "resolver",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == name)
            .ok_or("must be generator, issued or resolver")
    }
}
