//! Writing exports entry by entry.

mod yaml;

use std::io::{self, Write};

use super::{format::Format, node::Node};

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

    /// Ends the list so that no reader takes it for a whole one.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn give_up(mut self) -> io::Result<()> {
        self.output.write_all(GIVEN_UP.as_bytes())?;
        self.output.flush()
    }
}

/// YAML has no character that must stand at its end. But none of its readers takes a value that begins with an at sign,
/// and none of JSON's takes this either.
const GIVEN_UP: &str = "\n@ the export ended before its end\n";

#[cfg(test)]
mod tests;
