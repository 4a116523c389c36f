//! Log lines as JSON, one object per line.
//!
//! The formatter of `tracing-subscriber` passes each key, value and punctuation mark through several writers. A line of the
//! access log takes three times as many instructions there.

use std::fmt;

use chrono::SecondsFormat;
use serde::Serialize;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, format::Writer},
    registry::LookupSpan,
};

use crate::process;

/// Formats events with their fields and their innermost span.
pub(super) struct JsonFormat;

impl<S> FormatEvent<S, Self> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Self>,
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
        event.record(&mut line);
        line.push("target", metadata.target());
        if let Some(span) = context.parent_span() {
            line.0.extend_from_slice(b",\"span\":{\"name\":");
            line.push_json(span.name());
            if let Some(fields) = span.extensions().get::<FormattedFields<Self>>() {
                line.0.extend_from_slice(fields.fields.as_bytes());
            }
            line.0.push(b'}');
        }
        line.0.extend_from_slice(b"}\n");
        line.write_to(&mut writer)
    }
}

impl<'w> FormatFields<'w> for JsonFormat {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut formatted = Fields(Vec::with_capacity(LINE_BYTES));
        fields.record(&mut formatted);
        formatted.write_to(&mut writer)
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

    fn write_to(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.write_str(str::from_utf8(&self.0).map_err(|_| fmt::Error)?)
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

/// The typical maximum size of a line, in bytes.
const LINE_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::{layer::SubscriberExt, registry};

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
            .fmt_fields(JsonFormat)
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
    fn an_event_has_its_fields_and_its_innermost_span() {
        let lines = lines_of(|| {
            let outer = tracing::info_span!("outer", hidden = true);
            let span = tracing::info_span!(
                parent: &outer,
                "inner",
                id = "7",
                later = tracing::field::Empty,
            );
            span.record("later", 1_u64);
            let _entered = span.enter();
            tracing::warn!(
                target: "b",
                { a.b = "\"\n\u{1}ä", count = -1, ratio = 0.5, is_so = true, what = ?Some(1) },
                "said {}",
                "it"
            );
        });
        let expected = json!({
            "timestamp": null,
            "level": "WARN",
            "message": "said it",
            "a.b": "\"\n\u{1}ä",
            "count": -1,
            "ratio": 0.5,
            "is_so": true,
            "what": "Some(1)",
            "target": "b",
            "span": {"name": "inner", "id": "7", "later": 1},
        });
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn an_event_without_a_span_has_none() {
        let lines = lines_of(|| tracing::info!(target: "a", ratio = f64::NAN));
        let expected = json!({"timestamp": null, "level": "INFO", "ratio": null, "target": "a"});
        assert_eq!(lines, [expected]);
    }
}
