//! `examples/uuid-generator`.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use keywright_harness::Server;
use serde_json::json;
use uuid::{Uuid, Variant};

use super::made;

pub(super) async fn is_a_uuid_or_a_token(server: &Server) {
    let value = made(server, "uuid", &json!({})).await;
    let text = value.as_str().unwrap();
    let parsed = Uuid::parse_str(text).unwrap();
    assert_eq!(parsed.hyphenated().to_string(), text);
    assert_eq!(parsed.get_version_num(), 4);
    assert_eq!(parsed.get_variant(), Variant::RFC4122);
    for bytes in [16, 17, 18, 32, 64] {
        let asked = json!({"format": "token", "bytes": bytes});
        let value = made(server, "uuid", &asked).await;
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(value.as_str().unwrap());
        assert_eq!(decoded.unwrap().len(), bytes);
    }
}
