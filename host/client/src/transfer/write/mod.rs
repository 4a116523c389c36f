//! Writing exports entry by entry.

mod background;
mod yaml;

use std::io::{self, Write};

use zeroize::Zeroizing;

pub(crate) use background::BackgroundWriter;

use super::{
    format::Format,
    node::{Node, Reason},
};

/// One credential as it is written.
pub(crate) struct Written {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) credential_type: String,
    /// Its value.
    pub(crate) value: Node,
    /// What is kept beside it.
    pub(crate) metadata: Option<Node>,
}

impl Written {
    /// The entry as it stands in a file.
    pub(crate) fn into_node(self) -> Node {
        let mut members = vec![
            ("name".to_owned(), Node::quoted(self.name)),
            ("type".to_owned(), Node::quoted(self.credential_type)),
            ("value".to_owned(), self.value),
        ];
        if let Some(metadata) = self.metadata {
            members.push(("metadata".to_owned(), metadata));
        }
        Node::Mapping(members)
    }
}

/// A JSON text as YAML, with a line end behind it. Numbers keep their digits, and members their order.
///
/// # Errors
/// When the text is not JSON, or nested too deep.
pub(crate) fn yaml(json: &str) -> Result<Zeroizing<String>, Reason> {
    let node = Node::from_json(json)?;
    // The lines of a text are indented, also where it is all there is.
    let indent = usize::from(matches!(node, Node::Scalar(_)));
    let mut written = Zeroizing::new(Vec::new());
    yaml::write(&mut *written, &node, indent).map_err(|_| NOT_WRITTEN)?;
    written.push(b'\n');
    let written = String::from_utf8(std::mem::take(&mut *written)).map_err(|_| NOT_WRITTEN)?;
    Ok(Zeroizing::new(written))
}

/// What does not happen: memory takes what is written to it, and what is written is text.
const NOT_WRITTEN: Reason = "it can't be written as YAML";

/// Writes a list of credentials.
pub(crate) struct EntryWriter<W> {
    output: W,
    format: Format,
    entries: usize,
}

impl<W: Write> EntryWriter<W> {
    /// Begins the list.
    ///
    /// # Errors
    /// When it can't be written.
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
    /// When it can't be written.
    pub(crate) fn write(&mut self, written: Written) -> io::Result<()> {
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

    /// Ends the list, and gives back what it was written to.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.output.write_all(match (self.format, self.entries) {
            (Format::Json, _) => b"\n]}\n",
            (Format::Yaml, 0) => b" []\n",
            (Format::Yaml, _) => b"\n",
        })?;
        self.output.flush()?;
        Ok(self.output)
    }

    /// What it is written to.
    pub(crate) fn output(&mut self) -> &mut W {
        &mut self.output
    }
}

/// What stands at the end of an export that did not come to its end, so that no reader takes it for a whole one.
///
/// YAML has no character that must stand at its end. But none of its readers takes a value that begins with an at sign,
/// and none of JSON's takes this either.
const GIVEN_UP: &str = "\n@ the export ended before its end\n";

#[cfg(test)]
mod tests;
