//! JSON returned by plugins.

use keywright_harness::{Answer, Options, Server, component};
use serde_json::{Value, json};

use super::{
    DATA,
    corpus::{Input, inputs},
    is_wrong_anywhere,
};
use crate::alive::assert_alive;

/// A server whose plugin `hostile` returns the text under `note` from this function.
async fn server(function: &str) -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ deadline_ms = 600000 }}\nsettings = {{ {function} = \"echo\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().generator("hostile", &section)).await
}

/// Returns the inputs that fit in a note.
fn texts() -> Vec<(Input, String)> {
    let inputs = inputs()
        .into_iter()
        .filter(|input| input.text.len() < 100_000);
    inputs
        .filter_map(|input| {
            let text = String::from_utf8(input.text.clone()).ok()?;
            Some((input, text))
        })
        .collect()
}

/// Requires that an invalid text is rejected as the plugin's error, and that nothing else fails.
#[track_caller]
fn assert_refused(answer: &Answer, input: &Input) {
    let is_plugins = answer.status == 500 && answer.error().starts_with("the plugin hostile ");
    let is_callers = (400..500).contains(&answer.status);
    assert!(
        is_plugins || is_callers || (answer.status == 200 && !is_wrong_anywhere(input)),
        "{}: {} {}",
        input.what,
        answer.status,
        answer.body
    );
}

#[tokio::test]
async fn no_value_returned_by_a_plugin_crashes_the_server() {
    let server = server("generate").await;
    for (input, text) in texts() {
        for value in [
            text.clone(),
            format!(r#"{{"secret":"s","note":{text}}}"#),
            format!(r#"{{"secret":{text}}}"#),
        ] {
            let answer = server
                .generate("/a", "hostile", json!({"note": value}))
                .await;
            assert_refused(&answer, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_parameters_returned_by_a_plugin_crash_the_server() {
    let server = server("normalize").await;
    for (input, text) in texts() {
        for parameters in [text.clone(), format!(r#"{{"a":{text}}}"#)] {
            let given = json!({"note": parameters});
            let answer = server.generate("/a", "hostile", given.clone()).await;
            assert_refused(&answer, &input);
            // The stored parameters are read again.
            let answer = server
                .generate_in_mode("converge", "/a", "hostile", given)
                .await;
            assert_refused(&answer, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_value_accepted_by_a_plugin_crashes_the_server() {
    let server = server("accept").await;
    for (input, text) in texts() {
        for value in [text.clone(), format!(r#"{{"secret":"s","note":{text}}}"#)] {
            let value: Value = json!({"secret": "s", "note": value});
            let answer = server.set("/a", "hostile", value).await;
            assert_refused(&answer, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_parameters_recovered_by_a_plugin_crash_the_server() {
    let server = server("recover").await;
    for (input, text) in texts() {
        // The text is part of a stored value, which must not be too large.
        if text.len() > 50_000 {
            continue;
        }
        for parameters in [text.clone(), format!(r#"{{"a":{text}}}"#)] {
            let value = json!({"secret": "s", "note": parameters});
            server.set("/a", "hostile", value).await.expect(200);
            let body =
                json!({"name": "/a", "type": "hostile", "mode": "converge", "parameters": {}});
            assert_refused(&server.post(DATA, body).await, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}
