use serde_json::json;

use super::*;

/// Versions of earlier releases can contain keys that are rejected now.
#[test]
fn reserved_keys_are_allowed_in_values_but_not_in_parameters() {
    let smuggled = r#"{"$serde_json::private::RawValue":"1"}"#;
    let value = format!(r#"{{"value":{smuggled},"metadata":{smuggled}}}"#);
    let content = Content::from_plaintext(&Secret::new(value)).unwrap();
    assert_eq!(content.value.expose(), smuggled);
    assert_eq!(content.metadata.unwrap().json().expose(), smuggled);
    let parameters = format!(r#"{{"value":"v","parameters":{{"length":{smuggled}}}}}"#);
    let content = Content::from_plaintext(&Secret::new(parameters)).unwrap();
    let refused = content.parsed_parameters().err();
    assert!(matches!(refused, Some(UseCaseError::StoredValueMalformed)));
}

#[test]
fn plaintext_is_written_into_one_buffer() {
    let content = Content {
        value: Secret::new(json!("v".repeat(1_000)).to_string()),
        parameters: Some(Secret::new("{}".to_owned())),
        metadata: Some(Metadata::parse(Secret::new("{}".to_owned())).unwrap()),
        trusted_ca: Some("\u{1}".repeat(1_000)),
        inputs: Vec::new(),
        chosen_by: Some(Actor::of_lookup(&"\u{1}".repeat(255))),
    };
    let name = CredentialName::parse("/Team/a").unwrap();
    let credential_type = CredentialType::parse("password").unwrap();
    let plaintext = content.to_plaintext(&name, &credential_type).unwrap();
    let strings = name.as_str().len() + credential_type.as_str().len() + 1_000 + 255;
    let others = content.value.expose().len() + "{}{}".len();
    let bytes_max = KEYS_BYTES_MAX + ESCAPED_BYTES_MAX * strings + others;
    assert!(plaintext.expose().len() <= bytes_max);
    assert_eq!(plaintext.capacity(), bytes_max);
}

#[test]
fn content_survives_a_round_trip() {
    let content = Content {
        value: Secret::new(r#"{"b":"ä\n","a":1}"#.to_owned()),
        parameters: Some(Secret::new(r#"{"length":30}"#.to_owned())),
        metadata: Some(Metadata::parse(Secret::new(r#"{"owner":[1,null]}"#.to_owned())).unwrap()),
        trusted_ca: Some("-----BEGIN\nPEM".to_owned()),
        inputs: vec![InputVersion {
            pointer: "/a\"b".to_owned(),
            name: CredentialName::parse("/Team/b").unwrap(),
            version_id: Uuid::from_u128(7),
        }],
        chosen_by: Some(Actor::of_lookup("uaa-client:a\"b")),
    };
    let name = CredentialName::parse("/Team/a").unwrap();
    let credential_type = CredentialType::parse("password").unwrap();
    let plaintext = content.to_plaintext(&name, &credential_type).unwrap();
    let back = Content::from_plaintext(&plaintext).unwrap();
    let sealed_for = SealedFor::from_plaintext(&plaintext).unwrap();
    assert_eq!(sealed_for.name.as_deref(), Some("/Team/a"));
    assert_eq!(sealed_for.credential_type.as_deref(), Some("password"));
    let older = Secret::new(r#"{"value":1}"#.to_owned());
    assert!(SealedFor::from_plaintext(&older).unwrap().name.is_none());
    assert_eq!(Content::from_plaintext(&older).unwrap().chosen_by, None);
    assert!(back.value == content.value);
    assert!(back.parameters == content.parameters);
    assert_eq!(back.trusted_ca, content.trusted_ca);
    assert_eq!(back.inputs, content.inputs);
    assert_eq!(back.chosen_by, content.chosen_by);
    assert_eq!(
        back.metadata.unwrap().json().expose(),
        r#"{"owner":[1,null]}"#
    );
}
