//! The members of `params` that routing needs, found in one pass.

use signalbox_wire::{Envelope, Span, json};

/// Where the members stand in the whole message.
#[derive(Copy, Clone, Default, Debug)]
pub struct Params {
    /// `name`.
    pub name: Option<Span>,
    /// `uri`.
    pub uri: Option<Span>,
    /// `ref`.
    pub reference: Option<Span>,
    /// `cursor`.
    pub cursor: Option<Span>,
    /// `level`.
    pub level: Option<Span>,
    /// `taskId`.
    pub task_id: Option<Span>,
    /// `task`.
    pub task: Option<Span>,
    /// `_meta.progressToken`.
    pub progress_token: Option<Span>,
}

impl Params {
    /// Reads the params of a message; a message without any has none of them.
    pub fn read(message: &Envelope) -> Self {
        let mut found = Self::default();
        let (Some(bytes), Some(whole)) = (message.params(), message.params_span()) else { return found };
        for member in json::members(bytes) {
            let value = member.value.shift(whole.start);
            let slot = match member.key.of(bytes) {
                b"\"name\"" => &mut found.name,
                b"\"uri\"" => &mut found.uri,
                b"\"ref\"" => &mut found.reference,
                b"\"cursor\"" => &mut found.cursor,
                b"\"level\"" => &mut found.level,
                b"\"taskId\"" => &mut found.task_id,
                b"\"task\"" => &mut found.task,
                b"\"_meta\"" => {
                    let inner = member.value.of(bytes);
                    found.progress_token = json::member(inner, "progressToken").map(|span| span.shift(value.start));
                    continue;
                }
                _ => continue,
            };
            *slot = Some(value);
        }
        found
    }
}
