//! `keywright:generator/notes`: what a guest shows to its author.

use std::sync::Arc;

use wasmtime::component::{Linker, WasmStr};

use crate::{
    call::CallState,
    text::{GUEST_TEXT_BYTES_MAX, for_log},
};

/// The most notes that a call shows.
const NOTES_MAX: u32 = 32;

/// What is done with a note, or with what is said of notes that were dropped. It is given the name of the function that was
/// called, and a text without control characters.
///
/// There is none in a server: what a plugin notes may be secret.
pub type NoteReader = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The notes of one call.
pub(crate) struct Notes {
    reader: NoteReader,
    function: &'static str,
    count: u32,
}

impl Notes {
    /// Those of a call of this function.
    pub(crate) fn new(reader: NoteReader, function: &'static str) -> Self {
        Self {
            reader,
            function,
            count: 0,
        }
    }

    /// Says how many were dropped, now that the call has ended.
    pub(crate) fn end(&self) {
        let dropped = self.count.saturating_sub(NOTES_MAX);
        if dropped > 0 {
            let told = format!("{dropped} more notes of this call are not shown");
            (self.reader)(self.function, &told);
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
/// When something is defined under that name already.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>, name: &str) -> wasmtime::Result<()> {
    let mut interface = linker.instance(name)?;
    interface.func_wrap("note", |mut store, (text,): (WasmStr,)| {
        // Looked at in any case, so that a guest is not ended for it only where somebody reads.
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
