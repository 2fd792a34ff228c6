//! Members of `params` that routing needs, found in one pass.

use crate::exchange::RoundSpans;
use signalbox_wire::{Envelope, Span, meta};

/// Spans of the members in the whole message.
#[derive(Copy, Clone, Default, Debug)]
pub struct Params {
    /// Span of `name`: the tool or prompt.
    pub name: Option<Span>,
    /// Span of `uri`: the resource.
    pub uri: Option<Span>,
    /// Span of `arguments`: the arguments of a tool or prompt.
    pub arguments: Option<Span>,
    /// Span of `ref`: the subject of a completion.
    pub reference: Option<Span>,
    /// Span of `cursor`: the position in a list.
    pub cursor: Option<Span>,
    /// Span of `level`: the log level to set.
    pub level: Option<Span>,
    /// Span of `taskId`: the task that the request is about.
    pub task_id: Option<Span>,
    /// Span of `task`: the wish to run the call as a task.
    pub task: Option<Span>,
    /// Span of `inputResponses`: the answers of this round.
    pub responses: Option<Span>,
    /// Span of `requestState`: the state of the earlier round.
    pub state: Option<Span>,
    /// Spans of the members of `_meta`, if present.
    pub own: Option<MetaSpans>,
}

/// Members of `_meta` that the gateway reads.
#[derive(Copy, Clone, Default, Debug)]
pub struct MetaSpans {
    /// Token under which the client wants progress.
    pub progress_token: Option<Span>,
    /// Revision of the new era.
    pub version: Option<Span>,
    /// The client's capabilities in the new era.
    pub capabilities: Option<Span>,
    /// The client's name in the new era.
    pub info: Option<Span>,
    /// Log level of the request in the new era.
    pub log_level: Option<Span>,
}

impl MetaSpans {
    fn read(message: &Envelope) -> Self {
        let mut found = Self::default();
        for member in message.params_meta() {
            let is = |name: &str| *member.name == *name.as_bytes();
            let slot = if is(meta::PROGRESS_TOKEN) {
                &mut found.progress_token
            } else if is(meta::PROTOCOL_VERSION) {
                &mut found.version
            } else if is(meta::CLIENT_CAPABILITIES) {
                &mut found.capabilities
            } else if is(meta::CLIENT_INFO) {
                &mut found.info
            } else if is(meta::LOG_LEVEL) {
                &mut found.log_level
            } else {
                continue;
            };
            *slot = Some(member.value);
        }
        found
    }
}

impl Params {
    /// Reads the params of a message. Without params, all spans are `None`.
    pub fn read(message: &Envelope) -> Self {
        let mut found = Self::default();
        // Keys are compared decoded: the backend reads `"\u005fmeta"` as `_meta` too.
        for member in message.params_members() {
            let slot = match &*member.name {
                b"name" => &mut found.name,
                b"uri" => &mut found.uri,
                b"arguments" => &mut found.arguments,
                b"ref" => &mut found.reference,
                b"cursor" => &mut found.cursor,
                b"level" => &mut found.level,
                b"taskId" => &mut found.task_id,
                b"task" => &mut found.task,
                b"inputResponses" => &mut found.responses,
                b"requestState" => &mut found.state,
                b"_meta" => {
                    found.own = Some(MetaSpans::read(message));
                    continue;
                }
                _ => continue,
            };
            *slot = Some(member.value);
        }
        found
    }

    /// Returns the spans that make this a later round of a call, if it is one.
    pub fn round(&self) -> Option<RoundSpans> {
        let round = RoundSpans { responses: self.responses, state: self.state };
        (round.responses.is_some() || round.state.is_some()).then_some(round)
    }

    /// Returns the span of `_meta.progressToken`.
    pub fn progress_token(&self) -> Option<Span> {
        self.own.and_then(|own| own.progress_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_written_with_escapes_is_the_same_key() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"\u006eame":"n","\u005fmeta":{"progress\u0054oken":7}}}"#;
        let message = Envelope::parse(text.into()).unwrap();
        let params = Params::read(&message);
        let of = |span: Option<Span>| span.map(|span| span.of(message.bytes()));
        assert_eq!(of(params.name), Some(&b"\"n\""[..]));
        assert_eq!(of(params.progress_token()), Some(&b"7"[..]));
    }
}
