//! Hostile JSON.

/// A key that makes `serde_json` parse its string value as JSON.
pub(crate) const RAW_VALUE_KEY: &str = "$serde_json::private::RawValue";

/// The same key with escaped characters.
pub(crate) const ESCAPED_RAW_VALUE_KEY: &str = r"\u0024serde_json::private::Raw\u0056alue";

/// A text that replaces a JSON value.
pub(crate) struct Input {
    /// A name for messages.
    pub(crate) what: String,
    /// The text, which may be invalid UTF-8.
    pub(crate) text: Vec<u8>,
    /// The expected error.
    pub(crate) fault: Fault,
}

/// The fault of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nested this many levels deep.
    Depth(usize),
    DuplicateKey,
    /// Not JSON, or a number is out of range.
    Malformed,
    /// Unusual, but valid.
    None,
    /// An object with a reserved key.
    ReservedKey,
}

impl Fault {
    /// Returns a part of the error for a body that contains the input at this depth; `None` if it is valid there.
    pub(crate) fn error(self, levels_around: usize) -> Option<&'static str> {
        match self {
            Self::Depth(levels) if levels + levels_around > DEPTH_MAX => {
                Some("nested more than 128 levels deep")
            }
            Self::Depth(_) | Self::None => None,
            Self::DuplicateKey => Some("duplicate key"),
            Self::Malformed => Some("malformed"),
            // Some of these inputs are also nested too deep. Both errors contain this text.
            Self::ReservedKey => Some("the request body"),
        }
    }
}

/// The server's maximum depth.
pub(crate) const DEPTH_MAX: usize = 128;

pub(crate) fn inputs() -> Vec<Input> {
    let mut inputs = deep();
    inputs.extend(reserved_keys());
    inputs.extend(duplicates());
    inputs.extend(numbers_and_texts());
    inputs.extend(large());
    inputs
}

/// Returns the inputs that can be sent in a header.
pub(crate) fn short_inputs() -> Vec<Input> {
    let mut inputs = inputs();
    inputs.retain(|input| input.text.len() <= SHORT_BYTES_MAX);
    inputs
}

/// The maximum size of an input that fits in a request's head as Base64.
const SHORT_BYTES_MAX: usize = 46_000;

/// Returns nested arrays and objects.
pub(crate) fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

fn deep() -> Vec<Input> {
    let mut inputs = Vec::new();
    for levels in [120, 124, 125, 126, 127, 128, 129, 10_000, 500_000] {
        inputs.push((levels, "arrays", nested("[", "]", levels)));
        inputs.push((levels, "objects", nested(r#"{"":"#, "}", levels)));
        inputs.push((levels, "both", nested(r#"[{"a":"#, "}]", levels / 2)));
    }
    // Never closed, so that only the depth limit can stop the parser.
    inputs.push((900_000, "open arrays", "[".repeat(900_000)));
    inputs
        .into_iter()
        .filter(|(.., text)| text.len() < BODY_BYTES_MAX)
        .map(|(levels, kind, text)| {
            let levels = if kind == "both" {
                levels / 2 * 2
            } else {
                levels
            };
            input(
                format!("{levels} levels of {kind}"),
                text,
                Fault::Depth(levels),
            )
        })
        .collect()
}

/// Wraps a number this many times: each time as JSON text in a string under the key, within this many levels of arrays.
pub(crate) fn reserved_key_text(key: &str, times: usize, levels: usize) -> String {
    let mut text = "1".to_owned();
    for _ in 0..times {
        // With these escapes, the length grows by a constant per level. With plain backslashes, it would double.
        let escaped = text.replace('\\', r"\u005c").replace('"', r"\u0022");
        let object = format!(r#"{{"{key}":"{escaped}"}}"#);
        text = format!("{}{object}{}", "[".repeat(levels), "]".repeat(levels));
    }
    text
}

fn reserved_keys() -> Vec<Input> {
    let mut texts: Vec<String> = Vec::new();
    for key in [RAW_VALUE_KEY, ESCAPED_RAW_VALUE_KEY] {
        for (times, levels) in [(1, 0), (2, 0), (21, 125), (54, 125), (80, 125)] {
            texts.push(reserved_key_text(key, times, levels));
        }
        texts.push(format!(r#"{{"{key}":"{{\"a\":1}}"}}"#));
        texts.push(format!(r#"{{"{key}":1}}"#));
        texts.push(format!(r#"{{"a":1,"{key}":"1"}}"#));
    }
    texts.push(r#"{"$serde_json::private::Number":"1e5"}"#.to_owned());
    texts.push(r#"{"\u0024serde_json::private::Number":"1"}"#.to_owned());
    texts.push(reserved_key_text(RAW_VALUE_KEY, 120, 125));
    let all = texts.into_iter();
    all.map(|text| input("a reserved key".to_owned(), text, Fault::ReservedKey))
        .collect()
}

fn duplicates() -> Vec<Input> {
    let many = format!("{{{}}}", vec![r#""a":1"#; 20_000].join(","));
    [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"b":[{"":{},"":[]}]}"#,
        &many,
    ]
    .map(|text| {
        input(
            "a duplicate key".to_owned(),
            text.to_owned(),
            Fault::DuplicateKey,
        )
    })
    .into()
}

fn numbers_and_texts() -> Vec<Input> {
    let digits = "9".repeat(100_000);
    let mut inputs = Vec::new();
    for (text, fault) in [
        ("1e999".to_owned(), Fault::Malformed),
        (format!("-1e{digits}"), Fault::Malformed),
        (format!("1e-{digits}"), Fault::None),
        (digits.clone(), Fault::Malformed),
        (format!("0.{digits}"), Fault::None),
        ("18446744073709551616".to_owned(), Fault::None),
        ("-0".to_owned(), Fault::None),
        ("01".to_owned(), Fault::Malformed),
        ("NaN".to_owned(), Fault::Malformed),
        (r#""\ud800""#.to_owned(), Fault::Malformed),
        (r#""\udc00\ud800""#.to_owned(), Fault::Malformed),
        (r#"{"\ud800":1}"#.to_owned(), Fault::Malformed),
        (r#""\u0000""#.to_owned(), Fault::None),
        ("\"\0\"".to_owned(), Fault::Malformed),
        ("\0".to_owned(), Fault::Malformed),
        ("\u{feff}1".to_owned(), Fault::Malformed),
        ("1,".to_owned(), Fault::Malformed),
    ] {
        let what: String = text.chars().take(20).collect();
        inputs.push(input(what, text, fault));
    }
    for text in [
        &b"\"\xff\""[..],
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"\xfe",
    ] {
        inputs.push(Input {
            what: "invalid UTF-8".to_owned(),
            text: text.to_owned(),
            fault: Fault::Malformed,
        });
    }
    inputs
}

fn large() -> Vec<Input> {
    let keys: Vec<String> = (0..60_000).map(|key| format!("\"{key}\":1")).collect();
    let flat = format!("[{}1]", "[],".repeat(200_000));
    let blanks = format!("{}1{}", " ".repeat(400_000), "\n".repeat(400_000));
    [
        ("many keys", format!("{{{}}}", keys.join(","))),
        ("a long key", format!(r#"{{"{}":1}}"#, "k".repeat(900_000))),
        ("a long text", format!("\"{}\"", "t".repeat(900_000))),
        (
            "a text of escapes",
            format!("\"{}\"", r"\u0061".repeat(150_000)),
        ),
        ("many arrays", flat),
        ("blanks", blanks),
    ]
    .map(|(what, text)| input(what.to_owned(), text, Fault::None))
    .into()
}

fn input(what: String, text: String, fault: Fault) -> Input {
    Input {
        what,
        text: text.into_bytes(),
        fault,
    }
}

/// Below the server's maximum body size.
const BODY_BYTES_MAX: usize = 1_040_000;
