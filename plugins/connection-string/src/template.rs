//! The parts of a template.

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text to copy.
    Text(&'a str),
    /// A placeholder: the key of a credential, and the field of its value, if any.
    Placeholder {
        /// The key.
        key: &'a str,
        /// The field.
        field: Option<&'a str>,
    },
}

/// Parses a template.
///
/// # Errors
///
/// If a brace is neither doubled nor part of a placeholder. Returns the rule.
pub fn parse(template: &str) -> Result<Vec<Part<'_>>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find(['{', '}']) {
        let (text, brace) = rest.split_at(start);
        parts.push(Part::Text(text));
        if brace.starts_with("{{") || brace.starts_with("}}") {
            parts.push(Part::Text(&brace[..1]));
            rest = &brace[2..];
            continue;
        }
        let inner = brace
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        let (placeholder, after) = inner.ok_or(UNBALANCED)?;
        let (key, field) = match placeholder.split_once('.') {
            Some((key, field)) => (key, Some(field)),
            None => (placeholder, None),
        };
        if !is_name(key) || !field.is_none_or(is_name) {
            return Err(MALFORMED);
        }
        parts.push(Part::Placeholder { key, field });
        rest = after;
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.bytes().all(is_allowed)
}

const UNBALANCED: &str =
    "must have a closing brace for each opening brace; write all other braces as {{ and }}";
const MALFORMED: &str = "must have placeholders of the form {KEY} or {KEY.FIELD}; KEY and FIELD may contain letters, digits, hyphens and underscores";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_is_split_into_text_and_placeholders() {
        let placeholder = |key, field| Part::Placeholder { key, field };
        let parsed = parse("a://{u.name}:{p}@{{h}}").unwrap();
        let parts: Vec<_> = parsed
            .into_iter()
            .filter(|part| *part != Part::Text(""))
            .collect();
        assert_eq!(
            parts,
            [
                Part::Text("a://"),
                placeholder("u", Some("name")),
                Part::Text(":"),
                placeholder("p", None),
                Part::Text("@"),
                Part::Text("{"),
                Part::Text("h"),
                Part::Text("}"),
            ]
        );
    }

    #[test]
    fn malformed_templates_are_refused() {
        for (template, rule) in [
            ("{", UNBALANCED),
            ("a{b", UNBALANCED),
            ("}", UNBALANCED),
            ("{a}}", UNBALANCED),
            ("{}", MALFORMED),
            ("{.a}", MALFORMED),
            ("{a.}", MALFORMED),
            ("{a.b.c}", MALFORMED),
            ("{ a }", MALFORMED),
            ("{ä}", MALFORMED),
        ] {
            assert_eq!(parse(template), Err(rule), "{template}");
        }
    }
}
