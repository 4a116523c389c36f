//! Writes exports entry by entry.

mod background;
mod yaml;

use std::io::{self, Write};

use zeroize::Zeroizing;

pub(crate) use background::BackgroundWriter;

use super::{
    format::Format,
    node::{Node, Reason},
};

/// The fields of a credential in an export.
pub(crate) struct ExportEntry {
    pub(crate) name: String,
    pub(crate) credential_type: String,
    pub(crate) value: Node,
    pub(crate) metadata: Option<Node>,
}

impl ExportEntry {
    /// Returns the entry of the file.
    pub(crate) fn into_node(self) -> Node {
        let mut fields = vec![
            ("name".to_owned(), Node::quoted(self.name)),
            ("type".to_owned(), Node::quoted(self.credential_type)),
            ("value".to_owned(), self.value),
        ];
        if let Some(metadata) = self.metadata {
            fields.push(("metadata".to_owned(), metadata));
        }
        Node::Mapping(fields)
    }
}

/// Converts JSON to YAML with a trailing newline. Numbers keep all digits, and keys their order.
///
/// # Errors
/// When the text is not JSON or nested too deep.
pub(crate) fn yaml(json: &str) -> Result<Zeroizing<String>, Reason> {
    let node = Node::from_json(json)?;
    // The lines of a block scalar must be indented, even at the top level.
    let indent = usize::from(matches!(node, Node::Scalar(_)));
    let mut written = Zeroizing::new(Vec::new());
    yaml::write(&mut *written, &node, indent).map_err(|_| NOT_WRITTEN)?;
    written.push(b'\n');
    let written = String::from_utf8(std::mem::take(&mut *written)).map_err(|_| NOT_WRITTEN)?;
    Ok(Zeroizing::new(written))
}

/// Unreachable: writing to memory does not fail, and the output is UTF-8.
const NOT_WRITTEN: Reason = "can't be written as YAML";

/// Writes a list of credentials.
pub(crate) struct EntryWriter<W> {
    output: W,
    format: Format,
    entries: usize,
}

impl<W: Write> EntryWriter<W> {
    /// Writes the start of the list.
    ///
    /// # Errors
    /// When the write fails.
    pub(crate) fn begin(mut output: W, format: Format) -> io::Result<Self> {
        output.write_all(match format {
            Format::Json => b"{\"credentials\":[",
            Format::Yaml => b"credentials:",
        })?;
        Ok(Self {
            output,
            format,
            entries: 0,
        })
    }

    /// Writes one credential.
    ///
    /// # Errors
    /// When the write fails, or the credential can't be represented as JSON.
    pub(crate) fn write(&mut self, written: ExportEntry) -> io::Result<()> {
        let node = written.into_node();
        match self.format {
            Format::Json => {
                let separator = if self.entries == 0 { "\n" } else { ",\n" };
                self.output.write_all(separator.as_bytes())?;
                let json = node.to_json().map_err(io::Error::other)?;
                self.output.write_all(json.as_bytes())?;
            }
            Format::Yaml => {
                self.output.write_all(b"\n- ")?;
                yaml::write(&mut self.output, &node, 1)?;
            }
        }
        self.entries += 1;
        Ok(())
    }

    /// Writes the end of the list, and returns the output.
    ///
    /// # Errors
    /// When the write fails.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.write_all(match (self.format, self.entries) {
            (Format::Json, _) => b"\n]}\n",
            (Format::Yaml, 0) => b" []\n",
            (Format::Yaml, _) => b"\n",
        })?;
        self.output.flush()?;
        Ok(self.output)
    }

    pub(crate) fn output(&mut self) -> &mut W {
        &mut self.output
    }
}

/// The end of an incomplete export, which makes it invalid.
///
/// A truncated YAML file can be valid, but no YAML or JSON parser accepts a value that starts with an at sign.
const GIVEN_UP: &str = "\n@ incomplete export\n";

#[cfg(test)]
mod tests;
