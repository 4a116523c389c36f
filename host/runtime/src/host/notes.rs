//! `keywright:generator/notes`: debug messages of a guest for its author.

use std::sync::Arc;

use wasmtime::component::{Linker, WasmStr};

use crate::{
    call::CallState,
    text::{GUEST_TEXT_BYTES_MAX, for_log},
};

/// The maximum number of notes shown per call.
const NOTES_MAX: u32 = 32;

/// A callback for notes, and for the message about dropped notes. Its parameters are the name of the called function and a
/// text without control characters.
///
/// Servers have none, because notes may contain secrets.
pub type NoteReader = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The notes of one call.
pub(crate) struct Notes {
    reader: NoteReader,
    function: &'static str,
    count: u32,
}

impl Notes {
    /// Creates the notes of a call of this function.
    pub(crate) fn new(reader: NoteReader, function: &'static str) -> Self {
        Self {
            reader,
            function,
            count: 0,
        }
    }

    /// Reports the number of dropped notes at the end of a call.
    pub(crate) fn end(&self) {
        let dropped = self.count.saturating_sub(NOTES_MAX);
        if dropped > 0 {
            let summary = format!("{dropped} more notes of this call are not shown");
            (self.reader)(self.function, &summary);
        }
    }

    fn take(&mut self, text: &str) {
        if self.count < NOTES_MAX {
            (self.reader)(self.function, &for_log(text));
        }
        self.count = self.count.saturating_add(1);
    }
}

/// Defines the interface under a name.
///
/// # Errors
/// If the name is already defined.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>, name: &str) -> wasmtime::Result<()> {
    let mut interface = linker.instance(name)?;
    interface.func_wrap("note", |mut store, (text,): (WasmStr,)| {
        // Decoded even without a reader, so that invalid UTF-8 traps in either case.
        let text = text.to_str(&store)?;
        if store.data().notes.is_some() {
            let start = text.floor_char_boundary(GUEST_TEXT_BYTES_MAX);
            let text = text.get(..start).unwrap_or_default().to_owned();
            if let Some(notes) = &mut store.data_mut().notes {
                notes.take(&text);
            }
        }
        Ok(())
    })
}
