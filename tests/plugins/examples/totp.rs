//! `examples/totp-generator`.

use keywright_harness::{Program, Server, toolchain_python};
use serde_json::{Value, json};

use super::made;

/// Returns pyotp's codes at these times, computed from the secret with the parameters, and from the URI.
const CODES: &str = "
import hashlib, json, sys, pyotp
given = json.load(sys.stdin)
digest = getattr(hashlib, given['algorithm'].lower())
by_secret = pyotp.TOTP(given['secret'], digits=given['digits'], digest=digest, interval=given['period'])
by_uri = pyotp.parse_uri(given['uri'])
json.dump({
    'by_secret': [by_secret.at(time) for time in given['times']],
    'by_uri': [by_uri.at(time) for time in given['times']],
    'issuer': by_uri.issuer,
    'account': by_uri.name,
}, sys.stdout)
";

pub(super) async fn is_a_secret_of_one_time_passwords(server: &Server) {
    for asked in [
        json!({"issuer": "ACME Co", "account": "ada@example.com"}),
        json!({"issuer": "A&B=?#/%", "account": "ä b", "digits": 8, "period": 60, "algorithm": "SHA512"}),
        json!({"issuer": "a", "account": "b", "digits": 7, "period": 15, "algorithm": "SHA256"}),
    ] {
        let value = made(server, "totp", &asked).await;
        let default = json!({"digits": 6, "period": 30, "algorithm": "SHA1"});
        let parameter = |name: &str| match &asked[name] {
            Value::Null => default[name].clone(),
            given => given.clone(),
        };
        let Some(mut python) = toolchain_python() else {
            return;
        };
        let given = json!({
            "secret": value["secret"],
            "uri": value["uri"],
            "digits": parameter("digits"),
            "period": parameter("period"),
            "algorithm": parameter("algorithm"),
            "times": [59, 1_111_111_109, 20_000_000_000_u64],
        });
        let codes = Program::finish(python.args(["-c", CODES]), &given.to_string());
        let codes: Value = serde_json::from_str(&codes.expect_success()).unwrap();
        assert_eq!(codes["by_uri"], codes["by_secret"], "{asked}");
        let digits = codes["by_uri"][0].as_str().unwrap().len();
        assert_eq!(parameter("digits"), digits);
        assert_eq!(codes["issuer"], asked["issuer"]);
        assert_eq!(codes["account"], asked["account"]);
    }
    refuses_what_no_app_could_read(server).await;
}

async fn refuses_what_no_app_could_read(server: &Server) {
    for (parameters, named) in [
        (json!({"account": "a"}), "issuer"),
        (json!({"issuer": "a:b", "account": "a"}), "issuer"),
        (
            json!({"issuer": "a", "account": "a", "digits": 5}),
            "digits",
        ),
        (
            json!({"issuer": "a", "account": "a", "period": 0}),
            "period",
        ),
    ] {
        let refused = server.generate("/refused", "totp", parameters).await;
        let error = refused.expect(400).error();
        assert!(error.contains(named), "{error}");
    }
}
