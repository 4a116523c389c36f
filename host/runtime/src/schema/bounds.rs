//! Limits on the work of validating by a schema, checked before it is compiled.
//!
//! A validation can't be interrupted, so schemas are refused if their work could grow faster than the size of the value.
//! References can make short schemas large: each `$ref` counts as the size of its target. Recursive references are refused, as
//! are references other than JSON Pointers, which this module does not follow.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaMalformed;

/// The maximum length of a schema, in bytes.
pub(super) const SCHEMA_BYTES_MAX: usize = 64 * 1_024;
/// The maximum depth of a schema, after resolving references.
pub(super) const SCHEMA_DEPTH_MAX: usize = 64;
/// The maximum number of parts of a schema, after resolving references. Each JSON value in it is a part, and counts as often as
/// a validation may visit it.
pub(super) const SCHEMA_PARTS_MAX: u64 = 8_192;
/// The maximum number of patterns in a schema, after resolving references.
pub(super) const SCHEMA_PATTERNS_MAX: u64 = 128;

/// Checks a schema against these limits and returns its number of parts.
///
/// # Errors
/// The first exceeded limit.
pub(super) fn check(schema: &Value) -> Result<u64, SchemaMalformed> {
    let mut counter = Counter {
        root: schema,
        known: HashMap::new(),
    };
    let size = counter.schema(schema, 1)?;
    if size.parts > SCHEMA_PARTS_MAX {
        return Err(SchemaMalformed::TooManyParts);
    }
    if size.patterns > SCHEMA_PATTERNS_MAX {
        return Err(SchemaMalformed::TooManyPatterns);
    }
    Ok(size.parts)
}

/// The size of a part of a schema, after resolving references.
#[derive(Clone, Copy, Default)]
struct Size {
    /// The parts that a validation may visit.
    parts: u64,
    /// The parts that an enclosing `unevaluatedProperties` or `unevaluatedItems` may visit again: it repeats the validation by
    /// each adjacent schema and its subschemas.
    again: u64,
    patterns: u64,
    depth: usize,
}

impl Size {
    const ONE: Self = Self {
        parts: 1,
        again: 1,
        patterns: 0,
        depth: 1,
    };

    fn add(&mut self, inner: Self) {
        self.parts = self.parts.saturating_add(inner.parts);
        self.again = self
            .again
            .saturating_add(inner.parts.saturating_add(inner.again));
        self.patterns = self.patterns.saturating_add(inner.patterns);
        self.depth = self.depth.max(inner.depth.saturating_add(1));
    }
}

struct Counter<'s> {
    root: &'s Value,
    /// The sizes of schemas by address; `None` while one is being counted.
    known: HashMap<*const Value, Option<Size>>,
}

impl<'s> Counter<'s> {
    /// Returns the size of a schema at this depth.
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<Size, SchemaMalformed> {
        let Value::Object(keywords) = schema else {
            return self.each(schema, depth);
        };
        let address = std::ptr::from_ref(schema);
        let size = match self.known.get(&address) {
            Some(Some(size)) => *size,
            Some(None) => return Err(SchemaMalformed::Recursive),
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
                    size.patterns = size.patterns.saturating_mul(2);
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
    ) -> Result<Size, SchemaMalformed> {
        match (keyword, argument) {
            ("$ref", Value::String(reference)) => {
                let target = self.target(reference)?;
                self.schema(target, depth)
            }
            ("$dynamicRef" | "$recursiveRef", _) => Err(SchemaMalformed::ReferenceNotAPointer),
            ("$id", Value::String(_)) if depth > 2 => Err(SchemaMalformed::ReferenceNotAPointer),
            ("pattern", _) => Ok(Size {
                patterns: 1,
                ..Size::ONE
            }),
            ("const" | "default" | "enum" | "examples", data) => data_size(data, depth),
            (
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
                | "properties",
                Value::Object(schemas),
            ) => {
                let mut size = Size::ONE;
                if keyword == "patternProperties" {
                    size.patterns = u64::try_from(schemas.len()).unwrap_or(u64::MAX);
                }
                check_depth(depth)?;
                for schema in schemas.values() {
                    size.add(self.schema(schema, depth + 1)?);
                }
                Ok(size)
            }
            (_, argument) => self.schema(argument, depth),
        }
    }

    /// Returns the size of an array of schemas, or of a scalar.
    fn each(&mut self, argument: &'s Value, depth: usize) -> Result<Size, SchemaMalformed> {
        check_depth(depth)?;
        let mut size = Size::ONE;
        for schema in argument.as_array().into_iter().flatten() {
            size.add(self.schema(schema, depth + 1)?);
        }
        Ok(size)
    }

    fn target(&self, reference: &str) -> Result<&'s Value, SchemaMalformed> {
        reference
            .strip_prefix('#')
            .filter(|pointer| !pointer.contains('%'))
            .and_then(|pointer| self.root.pointer(pointer))
            .ok_or(SchemaMalformed::ReferenceNotAPointer)
    }
}

/// Returns the size of data, in which keywords have no meaning.
fn data_size(data: &Value, depth: usize) -> Result<Size, SchemaMalformed> {
    check_depth(depth)?;
    let mut size = Size::ONE;
    for inner in inner_values(data) {
        size.add(data_size(inner, depth + 1)?);
    }
    Ok(size)
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

fn inner_values(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    let members = value.as_object().into_iter().flat_map(|it| it.values());
    items.chain(members)
}

fn check_depth(depth: usize) -> Result<(), SchemaMalformed> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(SchemaMalformed::TooDeep);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
