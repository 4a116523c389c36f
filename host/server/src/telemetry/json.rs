//! Log lines as JSON, one object per line.
//!
//! The formatter of `tracing-subscriber` passes each key, value and punctuation mark through several writers. A line of the
//! access log takes three times as many instructions there.

use std::fmt;

use chrono::SecondsFormat;
use keywright_core::request_id;
use serde::Serialize;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::process;

/// Formats events with their fields and the id of the request.
pub(super) struct JsonFormat;

impl<S, N> FormatEvent<S, N> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // The target of events from the crate `log` is in their fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        let mut line = Fields(Vec::with_capacity(LINE_BYTES));
        line.0.extend_from_slice(b"{\"timestamp\":");
        let time = process::now();
        line.push_json(&time.to_rfc3339_opts(SecondsFormat::Micros, true));
        line.push("level", metadata.level().as_str());
        if let Some(id) = request_id::current() {
            line.push(REQUEST_ID, &id);
        }
        event.record(&mut line);
        line.push("target", metadata.target());
        line.0.extend_from_slice(b"}\n");
        writer.write_str(str::from_utf8(&line.0).map_err(|_| fmt::Error)?)
    }
}

/// Fields of a JSON object, each after a comma.
struct Fields(Vec<u8>);

impl Fields {
    fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // Names are constants of the code. They contain no characters to escape.
        self.0.extend_from_slice(b",\"");
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        self.push_json(value);
    }

    fn push_json(&mut self, value: &(impl Serialize + ?Sized)) {
        // Strings and numbers can always be serialized.
        let _ = serde_json::to_writer(&mut self.0, value);
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field.name(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field.name(), &format_args!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field.name(), &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field.name(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field.name(), &value);
    }
}

/// The field with the id of the request.
pub(super) const REQUEST_ID: &str = "request_id";

/// The typical maximum size of a line, in bytes.
const LINE_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::{layer::SubscriberExt, registry};
    use uuid::Uuid;

    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Output {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines_of(log: impl FnOnce()) -> Vec<Value> {
        let output = Output::default();
        let writer = output.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(JsonFormat)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(registry().with(layer), log);
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let time = line["timestamp"].take();
            assert_eq!(
                time.as_str().unwrap().len(),
                "2026-11-22T02:19:23.123456Z".len()
            );
            line
        });
        lines.collect()
    }

    #[test]
    fn an_event_has_its_fields_and_the_id_of_its_request() {
        let warn = || {
            tracing::warn!(
                target: "b",
                { a.b = "\"\n\u{1}ä", count = -1, ratio = 0.5, is_so = true, what = ?Some(1) },
                "said {}",
                "it"
            );
        };
        let lines = lines_of(|| request_id::run_with(Some(Uuid::nil()), warn));
        let expected = json!({
            "timestamp": null,
            "level": "WARN",
            "request_id": Uuid::nil(),
            "message": "said it",
            "a.b": "\"\n\u{1}ä",
            "count": -1,
            "ratio": 0.5,
            "is_so": true,
            "what": "Some(1)",
            "target": "b",
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn an_event_without_a_request_has_no_id() {
        let lines = lines_of(|| tracing::info!(target: "a", ratio = f64::NAN));
        let expected = json!({"timestamp": null, "level": "INFO", "ratio": null, "target": "a"});
        assert_eq!(lines, [expected]);
    }
}
