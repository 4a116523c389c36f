//! The commands in a Markdown document, and the comparison of their output with it.

use std::fs;

use keywright_harness::workspace;

pub(super) struct Document {
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

/// Returns whether the output matches the document. `…` matches any text in a line, and any lines if it is alone on a
/// line.
pub(super) fn is_as_shown(shown: &str, written: &str) -> bool {
    let shown: Vec<_> = shown.lines().map(masked).collect();
    let written: Vec<_> = written.lines().map(masked).collect();
    are_as_shown(&shown, &written)
}

/// Returns whether a line matches the document.
pub(crate) fn has_line_as_shown(shown: &str, written: &str) -> bool {
    let wanted = format!("{ANY}{}{ANY}", masked(shown));
    written
        .lines()
        .any(|line| line_is_as_shown(&wanted, &masked(line)))
}

fn are_as_shown(shown: &[String], written: &[String]) -> bool {
    match (shown, written) {
        ([], []) => true,
        ([any, shown @ ..], _) if any == ANY => {
            (0..=written.len()).any(|omitted| are_as_shown(shown, &written[omitted..]))
        }
        ([first, shown @ ..], [line, written @ ..]) => {
            line_is_as_shown(first, line) && are_as_shown(shown, written)
        }
        _ => false,
    }
}

fn line_is_as_shown(shown: &str, line: &str) -> bool {
    let Some((before, after)) = shown.split_once(ANY) else {
        return shown == line;
    };
    let Some(mut rest) = line.strip_prefix(before) else {
        return false;
    };
    let mut parts: Vec<_> = after.split(ANY).collect();
    let last = parts.pop().unwrap();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Replaces ids, times and random values in a line with their types.
fn masked(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        let length = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != ':');
        let (word, behind) = rest.split_at(length.unwrap_or(rest.len()));
        masked.push_str(&masked_word(word));
        let mut others = behind.chars();
        masked.extend(others.next());
        rest = others.as_str();
    }
    masked
}

fn masked_word(word: &str) -> String {
    if has_form(word, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh") {
        return "<id>".to_owned();
    }
    if has_form(word, "hhhh-hh-hhThh:hh:hhZ") {
        return "<time>".to_owned();
    }
    let parts = word.split_inclusive(['-', ':']);
    let parts = parts.map(|part| {
        let text = part.trim_end_matches(['-', ':']);
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase());
        if text.len() < RANDOM_CHARACTERS_MIN || is_word {
            return part.to_owned();
        }
        format!("<{} characters>{}", text.len(), &part[text.len()..])
    });
    parts.collect()
}

/// Returns whether a word has a form, in which `h` is a hexadecimal digit.
fn has_form(word: &str, form: &str) -> bool {
    word.len() == form.len()
        && word.chars().zip(form.chars()).all(|(letter, form)| {
            if form == 'h' {
                letter.is_ascii_hexdigit()
            } else {
                letter == form
            }
        })
}

/// The placeholder for omitted text.
const ANY: &str = "…";

/// The minimum length of random values in the documents. A text of lower-case letters is a word.
const RANDOM_CHARACTERS_MIN: usize = 12;

#[test]
fn only_variable_text_may_differ() {
    let id = "8563075f-ca25-4adf-9acb-a4be6a9077fd";
    let of = |id: &str, time: &str, value: &str| {
        format!(r#"{{"id":"{id}","at":"{time}","value":"{value}"}}"#)
    };
    let shown = of(id, "2026-11-21T12:35:44Z", "bVEfvLVFqha6Lk8x");
    let other = of(
        "b7cd722a-8afb-46d5-b1a3-8fd7cc27ea38",
        "2027-01-01T00:00:00Z",
        "91E55t96Jmkz3AAA",
    );
    for (written, is_match) in [
        (other, true),
        (shown.replace(id, "none"), false),
        (shown.replace("Lk8x", ""), false),
        (shown.replace("value", "valve"), false),
        (format!("{shown}\nmore"), false),
        (String::new(), false),
    ] {
        assert_eq!(is_as_shown(&shown, &written), is_match, "{written}");
    }
}

#[test]
fn omitted_text_matches_anything() {
    for (shown, written, is_match) in [
        ("a…", "abc", true),
        ("a…c", "abc", true),
        ("a…c", "abcd", false),
        ("a…b…c", "a1b2c", true),
        ("a…b…c", "a1c2b", false),
        ("a\n…\nc", "a\nc", true),
        ("a\n…\nc", "a\nb\nb\nc", true),
        ("a\n…\nc", "a\nb", false),
        ("…", "", true),
        ("", "a", false),
    ] {
        assert_eq!(is_as_shown(shown, written), is_match, "{shown} {written}");
    }
    assert!(has_line_as_shown(
        "is … here",
        "one\nit is not here, or is it"
    ));
    assert!(!has_line_as_shown("is … here", "one\nit is not\nhere"));
}
