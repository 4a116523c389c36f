//! Checks that texts avoid words which the rules in `host/docs/contributing.md` replace.

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use crate::step::{tracked_files, workspace};

    /// Words and phrases, each with its replacement.
    const REPLACED: [(&str, &str); 31] = [
        ("anew", "again, or a verb with re-"),
        ("answers", "responses, returns"),
        ("beside", "next to"),
        ("besides", "also, except"),
        ("do again", "retry, repeat"),
        ("fillings", "substituted values"),
        ("held against", "verified against, compared with"),
        ("hold against", "verify against, compare with"),
        ("lease out", "check out"),
        ("leads nowhere", "does not exist"),
        ("lend", "pass, grant"),
        ("lends", "passes, grants"),
        ("lent", "passed, granted, checked out"),
        ("nobody", "no client, no process"),
        ("none when", "`None` if"),
        ("nothing is said", "by default"),
        ("of no use", "unused, expired"),
        ("resting", "disabled"),
        ("sign of life", "health check"),
        ("somebody", "another client"),
        ("stand", "name the verb: are, contain"),
        ("stands", "name the verb: is, contains"),
        ("tells", "reports, shows"),
        ("tireless", "name the property"),
        ("told", "reported, passed"),
        ("under way", "in progress"),
        ("what asks", "the caller"),
        ("what is", "name the noun"),
        ("what was", "name the noun"),
        ("whoever", "the caller"),
        ("wholly", "completely"),
    ];

    /// Files and folders that are not checked, each with the reason.
    const UNCHECKED: [(&str, &str); 6] = [
        ("host/xtask/src/language.rs", "names the words"),
        ("migrations/postgres", "applied migrations never change"),
        ("migrations/sqlite", "applied migrations never change"),
        ("plugins/passphrase/src/words.txt", "a list of words"),
        ("tests/guests/released", "released guests never change"),
        ("wit/released", "released interfaces never change"),
    ];

    #[test]
    fn texts_avoid_replaced_words() {
        let mut found = Vec::new();
        for path in tracked_files().unwrap() {
            if UNCHECKED
                .iter()
                .any(|(unchecked, _)| path.starts_with(unchecked))
            {
                continue;
            }
            if let Ok(text) = fs::read_to_string(workspace().join(&path)) {
                found.extend(replaced_words(&path, &text));
            }
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn phrases_are_found_across_lines_and_not_in_longer_words() {
        let text = "It standardizes\nwhat\nis understood; Told.";
        let found = replaced_words(Path::new("a.md"), text);
        assert_eq!(
            found,
            [
                "a.md:3: told: reported, passed",
                "a.md:3: what is: name the noun"
            ]
        );
    }

    fn replaced_words(path: &Path, text: &str) -> Vec<String> {
        let words: Vec<(usize, String)> = text
            .lines()
            .enumerate()
            .flat_map(|(index, line)| {
                let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let words = words.filter(|word| !word.is_empty());
                words.map(move |word| (index, word.to_lowercase()))
            })
            .collect();
        let mut found = Vec::new();
        for (phrase, replacement) in REPLACED {
            let phrase_words: Vec<&str> = phrase.split(' ').collect();
            for window in words.windows(phrase_words.len()) {
                let (index, _) = window[window.len() - 1];
                let is_phrase = window
                    .iter()
                    .zip(&phrase_words)
                    .all(|((_, word), part)| word == part);
                if is_phrase {
                    let line = index + 1;
                    found.push(format!(
                        "{}:{line}: {phrase}: {replacement}",
                        path.display()
                    ));
                }
            }
        }
        found
    }
}
