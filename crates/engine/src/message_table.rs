//! Table of all kinds of messages that pass the gateway: the phase that judges each, and what each side gets when it is
//! refused. `docs/messages.md` shows this table, and a test compares the two.

use crate::chain::Phase;

/// Row of the table.
#[derive(Copy, Clone, Debug)]
pub struct MessageRow {
    /// Description of the messages.
    pub kind: &'static str,
    /// Sender and receiver of the messages.
    pub way: &'static str,
    /// Phase in which interceptors judge it, if they do. Every message is recorded.
    pub judged: Option<Phase>,
    /// True if an interceptor may refuse it.
    pub refusable: bool,
    /// Effect of a refusal for the client.
    pub client: &'static str,
    /// Effect of a refusal for the backend.
    pub backend: &'static str,
}

const fn row(
    kind: &'static str,
    way: &'static str,
    judged: Option<Phase>,
    client: &'static str,
    backend: &'static str,
) -> MessageRow {
    MessageRow { kind, way, judged, refusable: judged.is_some(), client, backend }
}

/// Rows of the table, in the order of the documentation.
pub const MESSAGES: [MessageRow; 18] = [
    row("a request that is routed, in any round", "client to backend", Some(Phase::Request), "an error", "nothing"),
    row("a list request", "client to gateway", Some(Phase::Request), "an error", "nothing"),
    row("`tasks/*` that the gateway answers", "client to gateway", Some(Phase::Request), "an error", "nothing"),
    row(
        "an answer of a backend, cached ones included",
        "backend to client",
        Some(Phase::Response),
        "an error",
        "nothing",
    ),
    row("a list page, a task's state or result", "gateway to client", Some(Phase::Response), "an error", "nothing"),
    row(
        "`initialize`, `server/discover`, `logging/setLevel`, `subscriptions/listen`",
        "client to gateway",
        Some(Phase::ToGateway),
        "an error",
        "nothing",
    ),
    row("the gateway's answer to one of these", "gateway to client", Some(Phase::FromGateway), "an error", "nothing"),
    row(
        "a question of a backend",
        "backend to client",
        Some(Phase::ServerAsks),
        "nothing, or its call ends",
        "an error",
    ),
    row(
        "the client's answer to it",
        "client to backend",
        Some(Phase::ClientAnswers),
        "nothing, or its call ends",
        "an error",
    ),
    row("a notification of a client", "client to backend", Some(Phase::FromClient), "nothing", "nothing"),
    row("a notification of a backend", "backend to client", Some(Phase::FromBackend), "nothing", "nothing"),
    MessageRow {
        refusable: false,
        ..row("`notifications/cancelled`, `notifications/initialized`", "either way", Some(Phase::FromClient), "—", "—")
    },
    row("`ping` and its answer", "either way", None, "—", "—"),
    row("a request of the gateway itself: handshake, lists, pings, listening", "gateway to backend", None, "—", "—"),
    row("the answer to one of these", "backend to gateway", None, "—", "—"),
    row(
        "a notification of the gateway itself: changed lists, acknowledgements, waiting",
        "gateway to client",
        None,
        "—",
        "—",
    ),
    row("an error of the gateway itself", "gateway to client", None, "—", "—"),
    row("an orphan, late or doubled answer; a request without an id", "either way, and no further", None, "—", "—"),
];

/// Renders the table for the documentation.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "| message | way | recorded | judged | refusable | refused, the client gets | refused, the backend gets |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in MESSAGES {
        let judged = row.judged.map_or("no".to_owned(), |phase| format!("`{}`", phase.rule_word()));
        let refusable = if row.refusable { "yes" } else { "no" };
        let line = format!(
            "| {} | {} | yes | {judged} | {refusable} | {} | {} |\n",
            row.kind, row.way, row.client, row.backend
        );
        text.push_str(&line);
    }
    text
}
