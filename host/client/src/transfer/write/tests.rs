//! Round trips of writing and reading.

use std::ops::ControlFlow;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::transfer::read::read_entries;

fn written(format: Format, values: &[Value]) -> String {
    let mut writer = EntryWriter::begin(Vec::new(), format).unwrap();
    for (index, value) in values.iter().enumerate() {
        writer
            .write(ExportEntry {
                name: format!("/{index}"),
                credential_type: "json".to_owned(),
                value: Node::from_json(&value.to_string()).unwrap(),
                metadata: (index % 2 == 1).then(|| Node::from_json(&value.to_string()).unwrap()),
            })
            .unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn read(format: Format, file: &str) -> Vec<Value> {
    let mut values = Vec::new();
    read_entries(file.as_bytes(), format, &mut |entry| {
        let entry = entry.unwrap();
        let value: Value = serde_json::from_str(&entry.value).unwrap();
        if let Some(metadata) = entry.metadata {
            assert_eq!(*metadata, *entry.value);
        }
        values.push(value);
        ControlFlow::Continue(())
    })
    .unwrap();
    values
}

#[test]
fn yaml_is_human_readable() {
    let value = json!({
        "text": "plain", "word": "yes", "number": "12", "count": 12, "empty": "", "none": null,
        "key": "-----BEGIN-----\nabc\n\n-----END-----\n", "cut": "a\nb", "odd": " a\nb",
        "list": [[1, "x\ny"], {"a": 1, "b": []}, {}], "a: b": "#",
    });
    let expected = r##"credentials:
- name: /0
  type: json
  value:
    text: plain
    word: "yes"
    number: "12"
    count: 12
    empty: ""
    none: null
    key: |
      -----BEGIN-----
      abc

      -----END-----
    cut: |-
      a
      b
    odd: " a\nb"
    list:
      - - 1
        - |-
          x
          y
      - a: 1
        b: []
      - {}
    "a: b": "#"
"##;
    assert_eq!(written(Format::Yaml, &[value]), expected);
    assert_eq!(written(Format::Yaml, &[]), "credentials: []\n");
    assert_eq!(written(Format::Json, &[]), "{\"credentials\":[\n]}\n");
}

#[test]
fn no_parser_accepts_an_incomplete_export() {
    for format in [Format::Json, Format::Yaml] {
        for count in 0..2 {
            let mut output = Vec::new();
            let mut writer = EntryWriter::begin(&mut output, format).unwrap();
            for _ in 0..count {
                let value = Node::quoted("line\nline".to_owned());
                let (name, credential_type) = ("/a".to_owned(), "value".to_owned());
                writer
                    .write(ExportEntry {
                        name,
                        credential_type,
                        value,
                        metadata: None,
                    })
                    .unwrap();
            }
            writer.output().write_all(GIVEN_UP.as_bytes()).unwrap();
            let read = read_entries(
                output.as_slice(),
                format,
                &mut |_| ControlFlow::Continue(()),
            );
            assert!(read.is_err());
        }
    }
}

#[test]
fn long_and_unusual_keys_survive_a_round_trip() {
    let long = "k".repeat(1_500);
    let value = json!({
        long.as_str(): {"a": 1}, format!("{long} \u{1}").as_str(): [1], "": "", "<<": {"x": 1}, "null": null,
        "? a": "- b", "a\nb": "\u{85}\u{2028}\u{feff}\u{7f}\u{0}\u{10ffff}", "😀": "\u{301}é", "~": "~",
    });
    for format in [Format::Json, Format::Yaml] {
        let values = [value.clone(), value.clone()];
        assert_eq!(read(format, &written(format, &values)), values);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n\t]{0,40}",
        "(a?[ #:-]?[|>\n]{0,2}){0,6}",
        "[-+.0-9eExo_:~]{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        text.clone().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    tree.prop_map(|value| json!({ "value": value }))
}

proptest! {
    #[test]
    fn any_json_survives_a_round_trip(values in prop::collection::vec(any_json(), 1..4)) {
        for format in [Format::Json, Format::Yaml] {
            let file = written(format, &values);
            prop_assert_eq!(&read(format, &file), &values, "{}", file);
        }
    }
}
