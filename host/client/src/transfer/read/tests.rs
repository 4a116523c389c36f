//! Tests valid files, as written by people and other clients, and invalid files.

use std::{fmt::Write, fs, ops::ControlFlow, time::UNIX_EPOCH};

use super::{input::ENTRY_BYTES_MAX, *};
use crate::SetCredential;

/// Returns each entry's name, type, value and metadata, or the reason for its refusal.
fn read(format: Format, file: &str) -> (Vec<Result<String, String>>, Result<(), FileError>) {
    let mut entries = Vec::new();
    let done = read_entries(file.as_bytes(), format, &mut |entry| {
        entries.push(match entry {
            Ok(entry) => {
                let SetCredential {
                    name,
                    credential_type,
                    value,
                    metadata,
                    ..
                } = entry.credential;
                let metadata = metadata.map(|json| format!(" {}", json.expose()));
                let metadata = metadata.unwrap_or_default();
                let value = value.expose();
                Ok(format!("{name} {credential_type} {value}{metadata}"))
            }
            Err(refused) => Err(format!(
                "{} {}: {}",
                refused.position,
                refused.name.unwrap_or_default(),
                refused.reason
            )),
        });
        ControlFlow::Continue(())
    });
    (entries, done)
}

#[track_caller]
fn values(format: Format, file: &str) -> Vec<String> {
    let (entries, done) = read(format, file);
    done.unwrap();
    entries.into_iter().map(Result::unwrap).collect()
}

#[track_caller]
fn reasons(file: &str) -> Vec<String> {
    let (entries, done) = read(Format::Yaml, file);
    done.unwrap();
    entries.into_iter().filter_map(Result::err).collect()
}

#[track_caller]
fn refusal(format: Format, file: &str) -> String {
    read(format, file).1.unwrap_err().to_string()
}

#[test]
fn unquoted_scalars_are_verbatim_where_strings_are_required() {
    for (written, text) in [
        ("yes", "yes"),
        ("true", "true"),
        ("007", "007"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("1.50", "1.50"),
        ("0x1F", "0x1F"),
        ("2026-11-22", "2026-11-22"),
        ("12:30:45", "12:30:45"),
        (".inf", ".inf"),
        ("!!str null", "null"),
        ("'null'", "null"),
        ("\"\\u00e4\\x41\\ud83d\\ude00\"", "äA😀"),
        ("folded\n    over lines", "folded over lines"),
        ("|-\n    two\n      lines", "two\n  lines"),
        (">-\n    one\n    line", "one line"),
        ("a # comment", "a"),
        ("a#b", "a#b"),
    ] {
        let file = format!("credentials:\n- name: /a\n  type: value\n  value: {written}\n");
        let text = serde_json::Value::from(text);
        assert_eq!(values(Format::Yaml, &file), [format!("/a value {text}")]);
    }
}

#[test]
fn anchors_aliases_and_merge_keys_are_read() {
    let file = "
x-common: &common {username: admin, password: &secret s3cret}
credentials:
- &first
  name: /a
  type: password
  value: *secret
- {name: /b, type: user, value: *common}
- {<<: *first, name: /c}
- {name: /d, type: user, value: {<<: [*common, {password: other, username: more}], username: me}}
- &secret2 {name: /e, type: json, value: &secret {list: [*common, 1]}}
- {name: /f, type: json, value: *secret}
";
    let common = r#"{"username":"admin","password":"s3cret"}"#;
    assert_eq!(
        values(Format::Yaml, file),
        [
            "/a password \"s3cret\"".to_owned(),
            format!("/b user {common}"),
            "/c password \"s3cret\"".to_owned(),
            r#"/d user {"username":"me","password":"s3cret"}"#.to_owned(),
            format!("/e json {{\"list\":[{common},1]}}"),
            format!("/f json {{\"list\":[{common},1]}}"),
        ]
    );
}

#[test]
fn json_numbers_keep_all_digits() {
    let file = "\u{20}{\"about\": [1], \"credentials\": [\n\
        {\"name\": \"/a\", \"type\": \"json\", \"value\": {\"n\": 1.10, \"e\": 1e300}},\n\
        {\"name\": \"b\", \"type\": \"value\", \"value\": 007.0e1},\n";
    let (entries, done) = read(Format::Json, file);
    assert_eq!(entries.len(), 1);
    assert_eq!(
        done.unwrap_err().to_string(),
        "line 3, column 42: invalid JSON"
    );
    let file = "{\"credentials\": [\
        {\"name\": \"/a\", \"type\": \"json\", \"value\": {\"n\": 1.10, \"e\": 1e300}},\
        {\"name\": \"b\", \"type\": \"value\", \"value\": 7}], \"more\": {}}";
    assert_eq!(
        values(Format::Json, file),
        [r#"/a json {"n":1.10,"e":1e300}"#, "/b value \"7\""]
    );
}

#[test]
fn invalid_entries_are_reported_and_the_others_are_read() {
    let file = "credentials:
- name: /a
  value: s3cret
- name: /b c
  type: value
  value: s3cret
- s3cret
- {name: /d, type: user, value: {password: [s3cret]}}
- {name: /e, type: value, value: *s3cret}
- {name: /f, type: value, value: {s3cret: 1}}
- {name: /g, type: value, value: x, value: s3cret}
- {name: /h, type: value, value: !custom s3cret}
- {name: /i, type: value, vaule: s3cret}
- {name: /j, type: json, value: {s3cret: .inf}}
- {name: /k, type: json, value: {[s3cret]: 1}}
- {type: value, value: s3cret}
- {name: /m, type: value, value: ~}
- {name: /n, type: json, value: {<<: s3cret}}
- {name: [s3cret], type: value, value: x}
- {name: /q, type: [s3cret], value: x}
- {name: /r, type: json, value: !!set {s3cret: ~}}
- {name: /s, type: user, value: {username: s3cret}}
- {name: /o, type: value, value: ok}
";
    let (entries, done) = read(Format::Yaml, file);
    done.unwrap();
    assert_eq!(entries.last(), Some(&Ok("/o value \"ok\"".to_owned())));
    let reasons: Vec<String> = entries.into_iter().filter_map(Result::err).collect();
    let expected = [
        "entry 1, line 2 /a: missing type",
        "entry 2, line 4 /b c: name may contain only letters, digits and the characters _ - / . : ( ) [ ]",
        "entry 3, line 7 : entry must be a mapping with name, type and value",
        "entry 4, line 8 /d: the fields of value must be strings",
        "entry 5, line 9 /e: an alias refers to an undefined or invalid anchor; quote strings that start with an asterisk",
        "entry 6, line 10 /f: value must be a string",
        "entry 7, line 11 /g: duplicate key `value`",
        "entry 8, line 12 /h: a YAML tag is not supported; remove the tag",
        "entry 9, line 13 /i: unknown field vaule; allowed fields are name, type, value, metadata, generated_by and parameters",
        "entry 10, line 14 /j: infinity and NaN are not allowed",
        "entry 11, line 15 /k: a key is not a string",
        "entry 12, line 16 : missing name",
        "entry 13, line 17 /m: missing value",
        "entry 14, line 18 /n: a merge key has a value that is not a mapping",
        "entry 15, line 19 : name must be a string",
        "entry 16, line 20 /q: type must be a string",
        "entry 17, line 21 /r: a YAML tag is not supported; remove the tag",
        "entry 18, line 22 /s: value has no password",
    ];
    assert_eq!(reasons, expected);
    assert!(!reasons.concat().contains("s3cret"));
}

#[test]
fn malformed_files_are_refused_without_their_content() {
    for (format, file, expected) in [
        (Format::Yaml, "", NO_LIST),
        (Format::Yaml, "- a\n", NO_LIST),
        (Format::Yaml, "other: []\n", NO_LIST),
        (Format::Yaml, "credentials: s3cret\n", NO_LIST),
        (Format::Yaml, "credentials: *s3cret\n", NO_LIST),
        (Format::Json, "{}", NO_LIST),
        (Format::Json, "[]", NO_LIST),
        (Format::Json, r#"{"credentials": "s3cret"}"#, NO_LIST),
        (
            Format::Json,
            r#"{"credentials": ["#,
            "line 1, column 17: unexpected end of file",
        ),
        (
            Format::Json,
            r#"{"credentials": []} s3cret"#,
            "line 1, column 21: invalid JSON",
        ),
        (
            Format::Json,
            "{\"credentials\": [],\n\"credentials\": []}",
            "line 2, column 14: duplicate key `credentials`",
        ),
        (
            Format::Yaml,
            "credentials: []\n---\ncredentials: []\n",
            "the file has more than one YAML document",
        ),
        (
            Format::Yaml,
            "credentials: []\ncredentials: []\n",
            "line 2, column 14: duplicate key `credentials`",
        ),
        (
            Format::Yaml,
            "credentials:\n- {name: /a, value: @s3cret}\n",
            "line 2, column 21: a value can't start with this character; quote the value",
        ),
    ] {
        assert_eq!(refusal(format, file), expected, "{file}");
    }
    for empty in ["credentials: []\n", "credentials:\n", "{credentials: ~}"] {
        assert!(values(Format::Yaml, empty).is_empty());
    }
    for invalid in [
        &b"credentials:\n- \xff\xfe\n"[..],
        b"credentials:\n- \xc3s3cret\n",
        b"credentials: []\n# \xc3",
    ] {
        let done = read_entries(invalid, Format::Yaml, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(done, Err(FileError::Unreadable(_))));
    }
}

#[test]
fn entries_above_1_mib_are_refused() {
    let yaml = |bytes: usize| {
        let value = "v".repeat(bytes);
        format!("credentials:\n- {{name: /a, type: value, value: {value}}}\n")
    };
    let json = |bytes: usize| {
        let value = "v".repeat(bytes);
        format!(r#"{{"credentials":[{{"name":"/a","type":"value","value":"{value}"}}]}}"#)
    };
    let frame = 1_024;
    let files: [(Format, &dyn Fn(usize) -> String); 2] =
        [(Format::Yaml, &yaml), (Format::Json, &json)];
    for (format, file) in files {
        let (entries, done) = read(format, &file(ENTRY_BYTES_MAX - frame));
        done.unwrap();
        assert!(entries[0].as_ref().unwrap_err().contains("65536 bytes"));
        assert_eq!(
            refusal(format, &file(ENTRY_BYTES_MAX + 1)),
            "an entry is longer than 1024 KiB, including aliases"
        );
    }
}

#[test]
fn exponentially_growing_aliases_are_refused() {
    let mut file = "a0: &a0 0123456789\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}", level - 1);
        let items = vec![below; 10].join(", ");
        writeln!(file, "a{level}: &a{level} [{items}]").unwrap();
    }
    file.push_str("credentials:\n- {name: /a, type: json, value: {a: *a8}}\n");
    let refused = reasons(&file);
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].contains("undefined or invalid anchor"),
        "{refused:?}"
    );

    let large = "v".repeat(ENTRY_BYTES_MAX / 4);
    let file = format!(
        "a: &a {large}\ncredentials:\n- {{name: /a, type: json, value: {{a: [*a, *a, *a, *a]}}}}\n"
    );
    let expected = "entry 1, line 3 /a: aliases expand to more than 1 MiB";
    assert_eq!(reasons(&file), [expected]);
}

#[test]
fn anchored_nodes_above_16_mib_are_refused() {
    let text = "v".repeat(ENTRY_BYTES_MAX / 2);
    let file = |count: usize| {
        let anchored = (0..count).map(|index| format!("a{index}: &a{index} {text}\n"));
        format!("{}credentials: []\n", anchored.collect::<String>())
    };
    assert!(values(Format::Yaml, &file(31)).is_empty());
    let expected = "the anchored nodes are larger than 16 MiB";
    assert_eq!(refusal(Format::Yaml, &file(32)), expected);
}

#[test]
fn nesting_above_128_levels_is_refused_with_aliases_too() {
    let mut file = format!("a0: &a0 {}{}\n", "[".repeat(100), "]".repeat(100));
    for level in 1..100 {
        writeln!(file, "a{level}: &a{level} [[*a{}]]", level - 1).unwrap();
    }
    file.push_str("credentials:\n- {name: /a, type: json, value: {a: *a99}}\n");
    let (entries, done) = read(Format::Yaml, &file);
    done.unwrap();
    let refused = entries[0].as_ref().unwrap_err();
    assert!(refused.contains("undefined or invalid anchor"), "{refused}");

    let nested = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!("credentials:\n- {{name: /a, type: json, value: {{a: {value}}}}}\n")
    };
    assert!(reasons(&nested(120)).is_empty());
    assert!(refusal(Format::Yaml, &nested(10_000)).contains("recursion"));
}

#[test]
fn the_receiver_can_stop_the_reading() {
    for (format, file) in [
        (Format::Yaml, "credentials: [1, 2, 3, @"),
        (Format::Json, "{\"credentials\": [1, 2, 3, @"),
    ] {
        let mut count = 0;
        let done = read_entries(file.as_bytes(), format, &mut |_| {
            count += 1;
            if count < 2 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        done.unwrap();
        assert_eq!(count, 2);
    }
}

const NO_LIST: &str = "the file has no top-level list `credentials`";

#[test]
fn writes_during_a_pass_are_detected_but_not_a_replacement() {
    let longer = format!("{LISTED}# more");
    for (written, is_noticed) in [
        (Some(longer.as_str()), true),
        (Some(LISTED), true),
        (None, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, LISTED).unwrap();
        // Far in the past, so that a coarse clock distinguishes the two writes.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        let mut source = Source::open(&path, None).unwrap();
        let read = source.read(&mut |_| {
            match written {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            ControlFlow::Continue(())
        });
        assert_eq!(matches!(read, Err(FileError::Changed)), is_noticed);
        assert_eq!(read.is_ok(), !is_noticed);
    }
}

const LISTED: &str = "credentials: [{name: /a, type: value, value: v}]\n";
