//! Limits on the work of validating by a schema, checked before it is compiled.
//!
//! A validation can't be interrupted, so schemas are refused if their work could grow faster than the size of the value.
//! References can make short schemas large: each `$ref` counts as the size of its target. Recursive references are refused, as
//! are references other than JSON Pointers, which this module does not follow.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Regex};
use keywright_json::JsonError;
use serde_json::{Value, json};

/// The maximum length of a schema, in bytes.
pub(super) const SCHEMA_BYTES_MAX: usize = 64 * 1_024;
/// The maximum depth of a schema, after resolving references.
pub(super) const SCHEMA_DEPTH_MAX: usize = 64;
/// The maximum number of parts of a schema, after resolving references. Each JSON value in it is a part, and counts as often as
/// a validation may visit it.
pub(super) const SCHEMA_PARTS_MAX: u64 = 8_192;
/// The maximum length of a property's name, in bytes. The console repeats the name of a parameter for each value that it lists.
pub(super) const PROPERTY_BYTES_MAX: usize = 256;
/// The maximum memory of a compiled pattern, in bytes. The worst-case time of a search is proportional to it, times the length
/// of the text.
pub(super) const PATTERN_BYTES_MAX: usize = 256 * 1_024;
/// The maximum memory of all compiled patterns in a schema, after resolving references, in bytes. Each counts as the next power of
/// two, at least [`PATTERN_BYTES_MIN`].
pub(super) const SCHEMA_PATTERN_BYTES_MAX: u64 = 1_024 * 1_024;
/// The maximum work of searching the texts of a value, in bytes of compiled patterns times bytes of text: 128 KiB of patterns
/// allow 128 KiB of text, the default limit of a plugin's input.
pub(super) const PATTERN_WORK_MAX: u64 = 128 * 1_024 * 128 * 1_024;
/// The maximum length of a pattern, in bytes. A short text with repetitions compiles to much memory, which the limits above
/// bound, but the time for compilation also grows with the text.
pub(super) const PATTERN_TEXT_BYTES_MAX: usize = 4 * 1_024;
/// The maximum work of comparing the items of arrays: the number of `uniqueItems` in a schema, after resolving references, times
/// the square of the value's parts. Items that contain arrays may have the same hash, so that each is compared with all others.
pub(super) const UNIQUE_WORK_MAX: u64 = 100_000_000;
/// The parts that a fractional `multipleOf` counts as. The validator may divide big integers, which takes up to 10 µs.
const FRACTION_PARTS: u64 = 512;
/// The least memory that a compiled pattern counts as, in bytes.
const PATTERN_BYTES_MIN: usize = 1_024;

/// The error for a schema that the host can't use. `Display` completes the sentence "its value schema …".
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum SchemaError {
    #[error("is not JSON")]
    NotJson(#[source] JsonError),
    #[error(
        "is not a JSON Schema that this server supports: {0}; it must be of draft 2020-12, without references to other \
         documents; patterns must have no look-around, and at most {PATTERN_BYTES_MAX} bytes when compiled"
    )]
    NotASchema(String),
    #[error("is not of type object")]
    NotOfObjects,
    #[error("is recursive: a $ref must not refer to a schema that contains it")]
    Recursive,
    #[error(
        "has an unsupported reference: use only $ref with a JSON Pointer into the same document, such as #/$defs/name; \
         percent-encoding, $dynamicRef and nested $id are not supported"
    )]
    ReferenceNotAPointer,
    #[error("has a property whose name contains control or invisible characters")]
    PropertyNotPrintable,
    #[error("has a property whose name is longer than {PROPERTY_BYTES_MAX} bytes")]
    PropertyTooLong,
    #[error("is nested more than {SCHEMA_DEPTH_MAX} levels deep, after resolving references")]
    TooDeep,
    #[error("is longer than {SCHEMA_BYTES_MAX} bytes")]
    TooLong,
    #[error("has more than {SCHEMA_PARTS_MAX} parts, after resolving references")]
    TooManyParts,
    #[error("has a pattern that is longer than {PATTERN_TEXT_BYTES_MAX} bytes")]
    PatternTooLong,
    #[error(
        "has patterns of more than {SCHEMA_PATTERN_BYTES_MAX} bytes when compiled, after resolving references; use simpler \
         patterns, or fewer repetitions"
    )]
    PatternsTooLarge,
    #[error(
        "has a misplaced writeOnly: it is only allowed at the top and on fields in `properties`"
    )]
    WriteOnlyMisplaced,
}

/// The size of a schema within the limits, after resolving references.
pub(super) struct SchemaSize {
    pub(super) parts: u64,
    pub(super) pattern_bytes: u64,
    /// The number of `uniqueItems`.
    pub(super) unique: u64,
}

/// Checks a schema against these limits and returns its size.
pub(super) fn check(schema: &Value) -> Result<SchemaSize, SchemaError> {
    let mut counter = Counter {
        root: schema,
        known: HashMap::new(),
        pattern_bytes: 0,
    };
    let size = counter.schema(schema, 1)?;
    if size.parts > SCHEMA_PARTS_MAX {
        return Err(SchemaError::TooManyParts);
    }
    if size.pattern_bytes > SCHEMA_PATTERN_BYTES_MAX {
        return Err(SchemaError::PatternsTooLarge);
    }
    Ok(SchemaSize {
        parts: size.parts,
        pattern_bytes: size.pattern_bytes,
        unique: size.unique,
    })
}

/// Returns the options to compile patterns of at most this many bytes.
pub(super) fn pattern_options(bytes_max: usize) -> PatternOptions<Regex> {
    PatternOptions::regex()
        .size_limit(bytes_max)
        .dfa_size_limit(bytes_max)
}

/// Returns the memory of a compiled pattern, rounded up to a power of two. A pattern that can't be compiled counts as the largest.
/// Its schema is refused when it is compiled.
fn pattern_bytes(pattern: &str) -> u64 {
    let schema = json!({ "pattern": pattern });
    let limits = std::iter::successors(Some(PATTERN_BYTES_MIN), |bytes| Some(bytes * 2));
    let mut limits = limits.take_while(|bytes| *bytes <= PATTERN_BYTES_MAX);
    let bytes = limits.find(|bytes| {
        let options = jsonschema::options().with_pattern_options(pattern_options(*bytes));
        options.build(&schema).is_ok()
    });
    u64::try_from(bytes.unwrap_or(PATTERN_BYTES_MAX)).unwrap_or(u64::MAX)
}

/// The size of a part of a schema, after resolving references.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The parts that a validation may visit.
    parts: u64,
    /// The parts that an enclosing `unevaluatedProperties` or `unevaluatedItems` may visit again: it repeats the validation by
    /// each adjacent schema and its subschemas.
    again: u64,
    pattern_bytes: u64,
    unique: u64,
    depth: usize,
}

impl Size {
    const ONE: Self = Self {
        parts: 1,
        again: 1,
        pattern_bytes: 0,
        unique: 0,
        depth: 1,
    };

    fn add(&mut self, inner: Self) {
        self.parts = self.parts.saturating_add(inner.parts);
        self.again = self
            .again
            .saturating_add(inner.parts.saturating_add(inner.again));
        self.pattern_bytes = self.pattern_bytes.saturating_add(inner.pattern_bytes);
        self.unique = self.unique.saturating_add(inner.unique);
        self.depth = self.depth.max(inner.depth.saturating_add(1));
    }
}

struct Counter<'s> {
    root: &'s Value,
    /// The sizes of schemas by address; `None` while one is being counted.
    known: HashMap<*const Value, Option<Size>>,
    /// The memory of the patterns counted so far, each once.
    pattern_bytes: u64,
}

impl<'s> Counter<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<Size, SchemaError> {
        let Value::Object(keywords) = schema else {
            return self.each(schema, depth);
        };
        let address = std::ptr::from_ref(schema);
        let size = match self.known.get(&address) {
            Some(Some(size)) => *size,
            Some(None) => return Err(SchemaError::Recursive),
            None => {
                check_depth(depth)?;
                self.known.insert(address, None);
                let mut size = Size::ONE;
                for (keyword, argument) in keywords {
                    size.add(self.keyword(keyword, argument, depth + 1)?);
                }
                if keywords.contains_key("unevaluatedProperties")
                    || keywords.contains_key("unevaluatedItems")
                {
                    size.parts = size.parts.saturating_add(size.again);
                    size.pattern_bytes = size.pattern_bytes.saturating_mul(2);
                    size.unique = size.unique.saturating_mul(2);
                }
                self.known.insert(address, Some(size));
                size
            }
        };
        check_depth(depth.saturating_add(size.depth) - 1)?;
        Ok(size)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        argument: &'s Value,
        depth: usize,
    ) -> Result<Size, SchemaError> {
        match (keyword, argument) {
            ("$ref", Value::String(reference)) => {
                let target = self.target(reference)?;
                self.schema(target, depth)
            }
            ("$dynamicRef" | "$recursiveRef", _) => Err(SchemaError::ReferenceNotAPointer),
            ("$id", Value::String(_)) if depth > 2 => Err(SchemaError::ReferenceNotAPointer),
            ("pattern", Value::String(pattern)) => Ok(Size {
                pattern_bytes: self.pattern(pattern)?,
                ..Size::ONE
            }),
            ("uniqueItems", Value::Bool(true)) => Ok(Size {
                unique: 1,
                ..Size::ONE
            }),
            ("multipleOf", Value::Number(divisor)) if divisor.is_f64() => Ok(Size {
                parts: FRACTION_PARTS,
                ..Size::ONE
            }),
            ("const" | "default" | "enum" | "examples", data) => Ok(data_size(data)),
            (
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
                | "properties",
                Value::Object(schemas),
            ) => {
                let mut size = Size::ONE;
                if keyword == "patternProperties" {
                    for pattern in schemas.keys() {
                        size.pattern_bytes += self.pattern(pattern)?;
                    }
                }
                for schema in schemas.values() {
                    size.add(self.schema(schema, depth + 1)?);
                }
                Ok(size)
            }
            (_, argument) => self.schema(argument, depth),
        }
    }

    /// Returns the memory of a pattern. Stops at the limit, because patterns are compiled to measure them.
    fn pattern(&mut self, pattern: &str) -> Result<u64, SchemaError> {
        if pattern.len() > PATTERN_TEXT_BYTES_MAX {
            return Err(SchemaError::PatternTooLong);
        }
        let bytes = pattern_bytes(pattern);
        self.pattern_bytes += bytes;
        if self.pattern_bytes > SCHEMA_PATTERN_BYTES_MAX {
            return Err(SchemaError::PatternsTooLarge);
        }
        Ok(bytes)
    }

    /// Returns the size of an array of schemas, or of a scalar.
    fn each(&mut self, argument: &'s Value, depth: usize) -> Result<Size, SchemaError> {
        check_depth(depth)?;
        let mut size = Size::ONE;
        for schema in argument.as_array().into_iter().flatten() {
            size.add(self.schema(schema, depth + 1)?);
        }
        Ok(size)
    }

    fn target(&self, reference: &str) -> Result<&'s Value, SchemaError> {
        reference
            .strip_prefix('#')
            .filter(|pointer| !pointer.contains('%'))
            .and_then(|pointer| self.root.pointer(pointer))
            .ok_or(SchemaError::ReferenceNotAPointer)
    }
}

/// Returns the size of data, in which keywords have no meaning.
fn data_size(data: &Value) -> Size {
    let mut size = Size::ONE;
    for inner in inner_values(data) {
        size.add(data_size(inner));
    }
    size
}

/// Returns the number of parts of a value. Stops counting above `parts_max`.
pub(super) fn value_parts(value: &Value, parts_max: u64) -> u64 {
    let mut parts = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        parts += 1;
        if parts > parts_max {
            break;
        }
        left.extend(inner_values(value));
    }
    parts
}

/// Returns the size of the texts in a value, including names, in bytes.
pub(super) fn text_bytes(value: &Value) -> u64 {
    let mut bytes = 0_usize;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        bytes = bytes.saturating_add(value.as_str().map_or(0, str::len));
        let names = value.as_object().into_iter().flat_map(|it| it.keys());
        bytes = names.fold(bytes, |bytes, name| bytes.saturating_add(name.len()));
        left.extend(inner_values(value));
    }
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn inner_values(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    let fields = value.as_object().into_iter().flat_map(|it| it.values());
    items.chain(fields)
}

fn check_depth(depth: usize) -> Result<(), SchemaError> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(SchemaError::TooDeep);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::Map;

    use super::{super::compile, *};

    /// Returns a schema of `length` definitions, each with two references to the previous one.
    fn doubling(length: usize) -> Value {
        let mut definitions = Map::new();
        definitions.insert("d0".to_owned(), json!({"type": "object"}));
        for number in 1..length {
            let before = json!({"$ref": format!("#/$defs/d{}", number - 1)});
            definitions.insert(format!("d{number}"), json!({"allOf": [before, before]}));
        }
        let last = format!("#/$defs/d{}", length - 1);
        json!({"type": "object", "$defs": definitions, "allOf": [{"$ref": last}]})
    }

    /// Returns a schema nested to this depth with `not`.
    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!({}), |inner, _| json!({"not": inner}))
    }

    fn refused(schema: &Value) -> String {
        match compile(&schema.to_string()) {
            Ok(_) => String::new(),
            Err(malformed) => malformed.to_string(),
        }
    }

    #[test]
    fn each_limit_is_allowed_and_one_past_it_is_refused() {
        let letters = |length: usize| json!({"title": "a".repeat(length)});
        let title_bytes = SCHEMA_BYTES_MAX - letters(0).to_string().len();
        // The schema, its keyword, and each option.
        let options = |count: u64| json!({"enum": (2..count).collect::<Vec<_>>()});
        let patterns = |bytes: u64| {
            let count = bytes / u64::try_from(PATTERN_BYTES_MIN).unwrap();
            let named = (0..count).map(|number| (number.to_string(), json!({"pattern": "a"})));
            json!({"properties": named.collect::<Map<_, _>>()})
        };
        // The definitions count again where they are referenced.
        let twice = |bytes: u64| json!({"$defs": {"a": patterns(bytes)}, "$ref": "#/$defs/a"});
        let fractions = |count: usize| json!({"anyOf": vec![json!({"multipleOf": 0.1}); count]});
        let named = |length: usize| json!({"properties": {"a".repeat(length): {}}});
        let many = "has patterns of more than 1048576 bytes";
        let text = |excess: usize| "a".repeat(PATTERN_TEXT_BYTES_MAX + excess);
        let long = "has a pattern that is longer than 4096 bytes";
        for (schema, expected) in [
            (letters(title_bytes), ""),
            (letters(title_bytes + 1), "is longer than 65536 bytes"),
            (nested(SCHEMA_DEPTH_MAX), ""),
            (nested(SCHEMA_DEPTH_MAX + 1), "is nested more than 64"),
            (options(SCHEMA_PARTS_MAX), ""),
            (options(SCHEMA_PARTS_MAX + 1), "has more than 8192 parts"),
            (fractions(15), ""),
            (fractions(16), "has more than 8192 parts"),
            (named(PROPERTY_BYTES_MAX), ""),
            (
                named(PROPERTY_BYTES_MAX + 1),
                "has a property whose name is longer than 256 bytes",
            ),
            (patterns(SCHEMA_PATTERN_BYTES_MAX), ""),
            (patterns(SCHEMA_PATTERN_BYTES_MAX + 1_024), many),
            (twice(SCHEMA_PATTERN_BYTES_MAX / 2), ""),
            (twice(SCHEMA_PATTERN_BYTES_MAX / 2 + 1_024), many),
            (json!({"pattern": text(0)}), ""),
            (json!({"pattern": text(1)}), long),
            (json!({"patternProperties": {text(1): {}}}), long),
            (json!({"pattern": "[a-z]{1,200}"}), ""),
            (
                json!({"pattern": "(\\w{100}){100}"}),
                "is not a JSON Schema",
            ),
        ] {
            let refused = refused(&schema);
            assert!(refused.starts_with(expected), "{expected}: {refused}");
            assert_eq!(refused.is_empty(), expected.is_empty(), "{refused}");
        }
    }

    #[test]
    fn texts_longer_than_the_work_of_the_patterns_are_refused() {
        let (_, checker) = compile(&json!({"pattern": "a[ab]{340}c"}).to_string()).unwrap();
        let bytes = usize::try_from(PATTERN_WORK_MAX / checker.size.pattern_bytes).unwrap();
        let (allowed, longer) = (json!(["c".repeat(bytes)]), json!(["c".repeat(bytes + 1)]));
        assert!(checker.broken_rule(&allowed).is_none());
        let broken = checker.broken_rule(&longer).unwrap().description;
        assert!(broken.starts_with("is too long"), "{broken}");
    }

    #[test]
    fn arrays_longer_than_the_work_of_unique_items_are_refused() {
        let unique = json!({"uniqueItems": true});
        let closed = json!({"uniqueItems": true, "unevaluatedItems": false, "items": true});
        for (schema, count) in [
            (unique.clone(), 1),
            (json!({"uniqueItems": false}), 0),
            (closed, 2),
            (
                json!({"allOf": vec![json!({"$ref": "#/$defs/unique"}); 4], "$defs": {"unique": unique}}),
                5,
            ),
        ] {
            let (_, checker) = compile(&schema.to_string()).unwrap();
            assert_eq!(checker.size.unique, count, "{schema}");
        }
        let (_, checker) = compile(&json!({"allOf": vec![unique; 4]}).to_string()).unwrap();
        // The array is a part, too.
        let numbers = |count: u64| Value::from((1..count).collect::<Vec<_>>());
        assert!(checker.broken_rule(&numbers(5_000)).is_none());
        let broken = checker.broken_rule(&numbers(5_001)).unwrap().description;
        assert!(broken.starts_with("is too large"), "{broken}");
    }

    #[test]
    fn references_count_as_their_targets() {
        assert_eq!(refused(&doubling(8)), "");
        for (length, expected) in [
            (14, "has more than 8192 parts"),
            (60, "is nested more than 64"),
        ] {
            let refused = refused(&doubling(length));
            assert!(refused.starts_with(expected), "{refused}");
        }
        // Chained references have the same maximum depth as nested schemas.
        let chain = |length: usize| {
            let named = (1..length).map(|number| {
                let next = format!("#/$defs/{}", number + 1);
                (number.to_string(), json!({"$ref": next}))
            });
            let mut definitions: Map<_, _> = named.collect();
            definitions.insert(length.to_string(), json!({}));
            json!({"$defs": definitions})
        };
        assert_eq!(refused(&chain(20)), "");
        assert!(refused(&chain(200)).starts_with("is nested more than 64"));
    }

    #[test]
    fn definitions_and_data_count_as_levels() {
        let schemas: [fn(usize) -> Value; 2] = [
            |levels| (2..levels).fold(json!({"$defs": {}}), |inner, _| json!({"not": inner})),
            |levels| json!({"default": (2..levels).fold(json!([]), |inner, _| json!([inner]))}),
        ];
        for nested in schemas {
            assert_eq!(refused(&nested(SCHEMA_DEPTH_MAX)), "");
            let refused = refused(&nested(SCHEMA_DEPTH_MAX + 1));
            assert!(refused.starts_with("is nested more than 64"), "{refused}");
        }
    }

    #[test]
    fn recursion_and_other_references_are_refused() {
        let by_id = json!({"$defs": {"a": {"$id": "https://a/b", "not": {"$ref": "#/not"}}}});
        for (schema, expected) in [
            (
                json!({"properties": {"child": {"$ref": "#"}}}),
                "is recursive",
            ),
            (json!({"$ref": "#"}), "is recursive"),
            (
                json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}}),
                "is recursive",
            ),
            (by_id, "has an unsupported reference"),
            (
                json!({"$ref": "#/%24defs/a", "$defs": {"a": {}}}),
                "has an unsupported reference",
            ),
            (
                json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}}),
                "has an unsupported reference",
            ),
            (json!({"$dynamicRef": "#a"}), "has an unsupported reference"),
            (
                json!({"$ref": "https://example.org/s.json"}),
                "has an unsupported reference",
            ),
            (
                json!({"$ref": "#/$defs/none"}),
                "has an unsupported reference",
            ),
            (
                json!({"$id": "https://a/b", "properties": {"$ref": {"type": "string"}}}),
                "",
            ),
            (
                json!({"default": {"$ref": "data"}, "enum": [{"$ref": "#"}]}),
                "",
            ),
        ] {
            let refused = refused(&schema);
            assert!(refused.starts_with(expected), "{schema}: {refused}");
            assert_eq!(refused.is_empty(), expected.is_empty(), "{refused}");
        }
    }

    #[test]
    fn unevaluated_keywords_count_adjacent_schemas_again() {
        let closed = |levels: usize| {
            (0..levels).fold(
                json!({"properties": {"a": {}}}),
                |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
            )
        };
        assert_eq!(refused(&closed(3)), "");
        assert!(refused(&closed(15)).starts_with("has more than 8192 parts"));
    }

    /// The largest schemas of several kinds, each with its most expensive value within the default limit of 128 KiB.
    #[test]
    fn the_limits_bound_the_time_of_a_check() {
        let value_bytes = 128 * 1_024;
        let ones = Value::Array(vec![json!(1); value_bytes / 2]);
        // Different trees of brackets with the same hash, until there are as many parts as one `uniqueItems` may compare.
        let mut trees = vec![json!([])];
        let mut parts = 2;
        while parts < UNIQUE_WORK_MAX.isqrt() {
            let tree = match trees.len() % 2 {
                0 => json!([trees[trees.len() / 2 - 1]]),
                _ => json!([trees[trees.len() / 2], []]),
            };
            parts += value_parts(&tree, u64::MAX);
            trees.push(tree);
        }
        trees.pop();
        let trees = Value::Array(trees);
        let types = vec![json!({"type": "number"}); 2_500];
        // The search of this pattern is slow: it has more states than the cache of its automaton.
        let pattern = json!({"pattern": "a[ab]{340}c"});
        let mut random = 1_u64;
        let letters: String = (0..value_bytes)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                if random >> 63 == 0 { 'a' } else { 'b' }
            })
            .collect();
        let letters = json!(letters);
        for (name, schema, value) in [
            ("items", json!({"items": {"allOf": types}}), &ones),
            (
                "enum",
                json!({"items": {"enum": (2..8_000).collect::<Vec<_>>()}}),
                &ones,
            ),
            ("unique", json!({"uniqueItems": true}), &trees),
            ("doubling", doubling(9), &ones),
            ("patterns", json!({"anyOf": vec![pattern; 4]}), &letters),
        ] {
            let begun = Instant::now();
            let (_, checker) = compile(&schema.to_string()).unwrap();
            let compiled = begun.elapsed();
            let begun = Instant::now();
            let violation = checker.broken_rule(value).map(|broken| broken.violation);
            println!(
                "{name}: compiled in {compiled:?}, checked in {:?}",
                begun.elapsed()
            );
            let seconds = begun.elapsed().as_secs();
            assert!(seconds < 120, "{name} took {seconds} s: {violation:?}");
        }
    }
}
