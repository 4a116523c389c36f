use serde_json::{Value, value::RawValue};

use crate::{DEPTH_MAX, JsonError, RESPONSE_DEPTH_MAX, check, check_response, read, read_bytes};

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn a_document_may_have_128_levels_and_a_response_more() {
    assert!(read::<Value>(&nested(DEPTH_MAX)).is_ok());
    assert!(check_response(&nested(RESPONSE_DEPTH_MAX)).is_ok());
    for depth in [DEPTH_MAX + 1, 10_000, 1_000_000] {
        assert_eq!(read::<Value>(&nested(depth)), Err(JsonError::TooDeep));
        let objects = r#"{"a":"#.repeat(depth);
        assert_eq!(check(&objects).err(), Some(JsonError::TooDeep));
    }
    let deeper = nested(RESPONSE_DEPTH_MAX + 1);
    assert_eq!(check_response(&deeper).err(), Some(JsonError::TooDeep));
}

#[test]
fn skipped_text_counts_as_depth_too() {
    let deep = nested(DEPTH_MAX + 1);
    assert_eq!(read::<&RawValue>(&deep).err(), Some(JsonError::TooDeep));
}

#[test]
fn each_fault_has_its_own_error() {
    for (text, expected) in [
        (r#"{"a":1,"b":{"a":[null,true,-1,1.5,"a"]}}"#, None),
        (
            r#"{"$serde_json":{"private":"$serde_json::private::"}}"#,
            None,
        ),
        (r#"{"a":1,"a":1}"#, Some(JsonError::DuplicateKey)),
        (r#"{"a":1,"\u0061":1}"#, Some(JsonError::DuplicateKey)),
        (r#"[{"b":{"a":1,"a":2}}]"#, Some(JsonError::DuplicateKey)),
        (
            r#"[{"$serde_json::private::RawValue":"1"}]"#,
            Some(JsonError::ReservedKey),
        ),
        (
            r#"{"\u0024serde_json::private::Raw\u0056alue":1}"#,
            Some(JsonError::ReservedKey),
        ),
        (
            r#"{"a":{"$serde_json::private::Number":"1"}}"#,
            Some(JsonError::ReservedKey),
        ),
        ("{", Some(JsonError::Truncated { line: 1, column: 1 })),
        ("{}x", Some(JsonError::Malformed { line: 1, column: 3 })),
        ("[1e999]", Some(JsonError::Malformed { line: 1, column: 6 })),
    ] {
        assert_eq!(check(text).err(), expected, "{text}");
    }
    for text in [
        "",
        " ",
        r#""\ud800""#,
        "\u{feff}{}",
        "{\"a\":\"\0\"}",
        "{a:1}",
        "[1,]",
    ] {
        assert!(check(text).is_err(), "{text}");
    }
    assert_eq!(read_bytes::<Value>(b"\"\xff\""), Err(JsonError::NotUtf8));
}

#[test]
fn a_wrong_type_is_reported_without_the_value() {
    let refused = read::<Vec<u8>>("[1,\n\"hunter2\"]").unwrap_err();
    assert_eq!(refused, JsonError::Mismatched { line: 2, column: 9 });
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
}

#[test]
fn parts_of_a_checked_text_are_read_without_another_check() {
    let checked = check(r#" {"b": [1, 2.50], "a": "x"} "#).unwrap();
    assert!(checked.is_object());
    let fields = checked.fields().unwrap();
    assert_eq!(fields[0].0, "b");
    let items = fields[0].1.items().unwrap();
    assert_eq!(items[1].text(), "2.50");
    assert_eq!(fields[1].1.read::<String>().unwrap(), "x");
    assert!(fields[1].1.fields().is_err());
}
