//! The commands in a Markdown document.

use std::fs;

use keywright_harness::workspace;

/// A document.
pub(super) struct Document {
    /// The fenced blocks.
    pub(super) blocks: Vec<Block>,
    /// The sessions to run.
    pub(super) sessions: Vec<Session>,
}

/// A fenced block.
pub(super) struct Block {
    /// The line on which it starts, counted from 1.
    pub(super) line: usize,
    /// The info string.
    pub(super) language: String,
    /// The content.
    pub(super) text: String,
}

/// Commands that are run by one shell.
pub(super) struct Session {
    /// The name of the script that prepares the session.
    pub(super) kind: String,
    /// The commands, in order.
    pub(super) steps: Vec<Step>,
}

/// A command and its output.
pub(super) struct Step {
    /// The line of the command, counted from 1.
    pub(super) line: usize,
    /// The command, of one or several lines.
    pub(super) command: String,
    /// The expected output; `None` for a hidden command, whose output is not checked.
    pub(super) expected: Option<String>,
}

impl Document {
    /// Parses a document of the workspace.
    pub(super) fn read(name: &str) -> Self {
        let text = fs::read_to_string(workspace().join(name)).unwrap();
        Self::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Self {
        let mut document = Self {
            blocks: Vec::new(),
            sessions: Vec::new(),
        };
        let mut open: Option<Block> = None;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(language) = line.strip_prefix("```") {
                match open.take() {
                    Some(block) => document.close(name, block),
                    None => open = Some(Block::begin(number, language)),
                }
            } else if let Some(block) = &mut open {
                block.text.push_str(line);
                block.text.push('\n');
            } else if let Some(words) = directive(line) {
                document.direct(name, number, words);
            }
        }
        assert!(open.is_none(), "{name}: a block is not closed");
        document
    }

    fn close(&mut self, name: &str, block: Block) {
        if block.language == "console" {
            let session = self.session(name, block.line);
            session.steps.extend(steps(name, &block));
        }
        self.blocks.push(block);
    }

    fn direct(&mut self, name: &str, line: usize, words: &str) {
        if let Some(kind) = words.strip_prefix("session ") {
            self.sessions.push(Session {
                kind: kind.to_owned(),
                steps: Vec::new(),
            });
        } else if let Some(command) = words.strip_prefix("$ ") {
            self.session(name, line).steps.push(Step {
                line,
                command: command.to_owned(),
                expected: None,
            });
        }
    }

    fn session(&mut self, name: &str, line: usize) -> &mut Session {
        let last = self.sessions.last_mut();
        last.unwrap_or_else(|| panic!("{name}:{line}: no session has begun"))
    }
}

impl Block {
    fn begin(line: usize, language: &str) -> Self {
        Self {
            line,
            language: language.to_owned(),
            text: String::new(),
        }
    }
}

/// Returns the content of a line that is only a comment.
fn directive(line: &str) -> Option<&str> {
    let words = line.strip_prefix("<!-- ")?;
    words.strip_suffix(" -->")
}

/// Returns the commands of a block, each with the output below it.
fn steps(name: &str, block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = (block.line + 1..).zip(block.text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            let step = steps.last_mut();
            let step = step.unwrap_or_else(|| panic!("{name}:{number}: there is no command above"));
            let expected = step.expected.get_or_insert_default();
            expected.push_str(line);
            expected.push('\n');
            continue;
        };
        let mut command = command.to_owned();
        let mut is_open = is_unfinished(&command);
        while is_open {
            let (_, more) = lines.next().unwrap();
            command.push('\n');
            command.push_str(more);
            is_open = is_unfinished(&command);
        }
        steps.push(Step {
            line: number,
            command,
            expected: Some(String::new()),
        });
    }
    steps
}

/// Returns whether a command continues on the next line: with a backslash, or in an unfinished here-document.
fn is_unfinished(command: &str) -> bool {
    if command.ends_with('\\') {
        return true;
    }
    let Some((_, rest)) = command.split_once("<<'EOF'") else {
        return false;
    };
    !rest.lines().any(|line| line == "EOF")
}

#[test]
fn commands_are_separated_from_their_output() {
    let text = "\
<!-- session development -->
# A
<!-- $ hidden -->
```console
$ one
$ two \\
    more
output
$ three <<'EOF'
text
EOF
```
```toml
a = 1
```
";
    let document = Document::parse("a", text);
    let [session] = document.sessions.as_slice() else {
        panic!("there is one session");
    };
    assert_eq!(session.kind, "development");
    let steps = session.steps.iter();
    let steps: Vec<_> = steps
        .map(|step| (step.line, step.command.as_str(), step.expected.as_deref()))
        .collect();
    assert_eq!(
        steps,
        [
            (3, "hidden", None),
            (5, "one", Some("")),
            (6, "two \\\n    more", Some("output\n")),
            (9, "three <<'EOF'\ntext\nEOF", Some("")),
        ]
    );
    assert_eq!(document.blocks[1].text, "a = 1\n");
}
