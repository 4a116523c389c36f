//! The segments of a JSON Pointer.

/// Encodes a name as a segment.
#[must_use]
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Decodes a segment.
#[must_use]
pub fn unescaped(segment: &str) -> String {
    if segment.contains('~') {
        segment.replace("~1", "/").replace("~0", "~")
    } else {
        segment.to_owned()
    }
}

/// Converts a JSON Pointer to a path with dots: `credentials.a`.
#[must_use]
pub fn dotted(pointer: &str) -> String {
    let segments = pointer.split('/').skip(1);
    segments.map(unescaped).collect::<Vec<_>>().join(".")
}
