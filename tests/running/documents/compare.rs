//! Compares the output of a command with a document.

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
            (0..=written.len()).any(|left_out| are_as_shown(shown, &written[left_out..]))
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
    for (written, is_so) in [
        (other, true),
        (shown.replace(id, "none"), false),
        (shown.replace("Lk8x", ""), false),
        (shown.replace("value", "valve"), false),
        (format!("{shown}\nmore"), false),
        (String::new(), false),
    ] {
        assert_eq!(is_as_shown(&shown, &written), is_so, "{written}");
    }
}

#[test]
fn omitted_text_matches_anything() {
    for (shown, written, is_so) in [
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
        assert_eq!(is_as_shown(shown, written), is_so, "{shown} {written}");
    }
    assert!(has_line_as_shown(
        "is … here",
        "one\nit is not here, or is it"
    ));
    assert!(!has_line_as_shown("is … here", "one\nit is not\nhere"));
}
