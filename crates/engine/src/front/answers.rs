//! Answers of backends on their way to the client.

use super::exchanges::Stage;
use super::holding::Continuation;
use super::judging::Reads;
use super::task_registry::{TaskEntry, TaskHost};
use super::{Context, FrontMachine, completed_template, resource_uris};
use crate::bridge::tasks::TaskState;
use crate::chain::Ruling;
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::local_answer::LocalAnswer;
use crate::profile::ClientProfile;
use crate::read_cache::CacheTerms;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, Kind, json, method};
use std::sync::Arc;

impl FrontMachine {
    pub(super) fn answered(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        mut edits: Edits,
        status: Option<u16>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some((exchange, stage)) = self.exchanges.staged_mut(id) else {
            return out.push(Command::Dropped("late_answer"));
        };
        if matches!(stage, Stage::PollingTask(poll) if poll.awaits_backend()) {
            return self.poll_answered(id, message, edits, ctx, out);
        }
        let is_new = exchange.era == Era::Modern;
        let kind = is_new.then(|| message.result_member("resultType")).flatten().map(|span| span.of(message.bytes()));
        // The member has no meaning in an answer of the old era, and is overwritten.
        let kind = kind.filter(|_| !edits.sets_member("resultType"));
        let asks = kind == Some(b"\"input_required\"");
        exchange.asks = asks;
        if let Some(fault) = self.withdrawn_round(id, ctx).filter(|_| asks) {
            return self.fail(id, &fault, ctx, out);
        }
        let Some(exchange) = self.exchanges.get(&id) else { return };
        match message.id_span() {
            Some(span) => edits.replace(span, exchange.client_id.token()),
            None => edits.insert(1, id_member(exchange)),
        }
        if let Err(fault) = sign_questions(exchange, kind, message, &mut edits, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        resource_uris::rename_uris(exchange, message, &mut edits, ctx);
        completed_template::hide_values(exchange, message, &mut edits, &Reads::of(exchange, &self.principal, ctx));
        self.remove_foreign_tasks(exchange, message, &mut edits, ctx);
        out.extend(keep_read(exchange, message));
        // A caller may ask only about tasks it made, and interceptors and permissions need the call that made them. A
        // backend of the old era names no kind of result.
        let may_make = exchange.wants_task || is_new && kind.is_none_or(|kind| kind == b"\"task\"");
        let makes_task = may_make && reports_task(exchange, message);
        let task = exchange.wants_task.then(|| message.result().and_then(TaskState::read)).flatten();
        let backend = exchange.backend.clone();
        let era = exchange.era;
        self.input_over(id, ctx, out);
        if let Some(home) = self.place_task(id, message, &mut edits, ctx) {
            out.push(home);
        }
        let bytes = match edits.apply_all(message.bytes()) {
            Ok(bytes) => bytes,
            Err(overlap) => {
                let fault = Fault::new(FaultKind::Internal, format!("the answer cannot be rewritten: {overlap}"));
                return self.fail(id, &fault, ctx, out);
            }
        };
        if makes_task {
            self.note_task(id, message, &bytes, ctx);
        }
        let status = http_status(era, message, &bytes, status);
        if let (Some(task), Some(backend)) = (task, backend) {
            let id = task.id.clone();
            self.register_task(&id, TaskEntry::new(backend, TaskHost::Legacy, Some(task), ctx.now), ctx, out);
        }
        let then = Continuation::Answer { status, outcome: Outcome::of(message), own: false };
        self.judge_answer(id, bytes, then, ctx, out);
    }

    /// Answers a call in its backend's place.
    pub(super) fn answer_locally(
        &mut self,
        id: ExchangeId,
        source: LocalAnswer,
        message: &Envelope,
        edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if ctx.message_facts {
            let ruling = Ruling::of(LocalAnswer::VERDICT, source.detail().to_owned());
            self.decided(Some(id), "response", [(source.author(), ruling.into())], ctx, out);
        }
        self.answered(id, message, edits, None, ctx, out);
    }

    /// Remembers the backend of a task created by a client of the new era, which will ask about it from another
    /// session. If another backend has a task with the same id, this one is exposed as `BACKEND+ID`.
    fn place_task(&self, id: ExchangeId, message: &Envelope, edits: &mut Edits, ctx: &Context<'_>) -> Option<Command> {
        let exchange = self.exchanges.get(&id)?;
        if exchange.era == Era::Legacy || ctx.catalog.backends().len() < 2 {
            return None;
        }
        let (result, backend) = (message.result()?, exchange.backend.as_ref()?);
        if exchange.method.starts_with("tasks/") {
            let ours = exchange.subject.as_deref().filter(|subject| subject.contains('+'))?;
            edits.replace(message.result_member("taskId")?, json::quote(ours));
            return None;
        }
        if exchange.method != method::TOOLS_CALL
            || message.result_member("resultType").is_none_or(|span| span.of(message.bytes()) != b"\"task\"")
        {
            return None;
        }
        let state = TaskState::read(result)?;
        match (ctx.task_home)(&state.id).filter(|home| home != backend) {
            Some(_) => {
                let ours = json::quote(&format!("{backend}+{}", state.id));
                edits.replace(message.result_member("taskId")?, ours);
                None
            }
            None => Some(Command::TaskHome { state: Box::new(state), backend: Arc::clone(backend) }),
        }
    }
}

/// Adds the backend's name to the questions in an answer: those of a call of the new era or of its task, and the URLs
/// to which an error of 2025-11-25 sends the user first. Fails if the client did not declare one of them.
fn sign_questions(
    exchange: &Exchange,
    kind: Option<&[u8]>,
    message: &Envelope,
    edits: &mut Edits,
    ctx: &Context<'_>,
) -> Result<(), Fault> {
    let is_error = message.kind() == Kind::Error;
    if !exchange.asks && !is_error && kind != Some(b"\"task\"") && exchange.method != method::TASKS_GET {
        return Ok(());
    }
    let backend = exchange.backend.as_deref().unwrap_or_default();
    // A client that does not know the error sees its URLs as plain text.
    let knows = |client: &&Arc<ClientProfile>| !is_error || client.revision.url_elicitation();
    let asker = match exchange.client.as_ref().filter(knows) {
        Some(client) => ctx.asker(backend).of_client(client),
        None => ctx.asker(backend),
    };
    let signed = match message.result_span() {
        Some(result) if !is_error => asker.sign_within(message.bytes(), result, edits),
        _ => asker.sign_error(message, edits),
    };
    signed.map_err(|no| no.fault(backend))
}

/// Returns true if the answer to a call reports a task. A client of the old era asks for one; one of the new era may be
/// given one.
fn reports_task(exchange: &Exchange, message: &Envelope) -> bool {
    let named = |message: &Envelope| {
        message.result_members().any(|member| {
            *member.name == *b"task"
                || *member.name == *b"resultType" && member.value.of(message.bytes()) == b"\"task\""
        })
    };
    exchange.method == method::TOOLS_CALL && (exchange.wants_task || exchange.era == Era::Modern) && named(message)
}

/// Builds the `id` member for an error without one. Such an error answers the call on whose stream it arrived.
fn id_member(exchange: &Exchange) -> Vec<u8> {
    let mut member = b"\"id\":".to_vec();
    member.extend_from_slice(exchange.client_id.token());
    member.push(b',');
    member
}

/// Builds the command that caches the result of a plain read, if it may be cached.
fn keep_read(exchange: &Exchange, message: &Envelope) -> Option<Command> {
    let ((uri, asked), result, backend) = (exchange.read.as_ref()?, message.result()?, exchange.backend.as_ref()?);
    Some(Command::KeepRead {
        backend: Arc::clone(backend),
        uri: uri.clone(),
        result: message.bytes().slice_ref(result),
        terms: CacheTerms::read(result)?,
        asked: *asked,
        era: exchange.era,
    })
}

/// Returns the HTTP status of an answer. In the old era it is always 200. In the new era it follows the error code as
/// sent. The backend's status is passed on only if revision 2026-07-28 uses it for errors and the error is unchanged:
/// other statuses, such as 401, concern the gateway's own access to the backend.
pub(super) fn http_status(era: Era, message: &Envelope, sent: &Bytes, given: Option<u16>) -> u16 {
    if era == Era::Legacy || message.kind() != Kind::Error {
        return 200;
    }
    let sent = Envelope::parse(sent.clone()).ok();
    let after = sent.as_ref().and_then(error_code);
    match after {
        Some(b"-32601") => 404,
        Some(b"-32020" | b"-32021" | b"-32022") => 400,
        _ => given.filter(|status| matches!(status, 400 | 404) && after == error_code(message)).unwrap_or(200),
    }
}

pub(super) fn error_code(message: &Envelope) -> Option<&[u8]> {
    let error = message.error()?;
    json::member(error, "code").map(|span| span.of(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64) -> Envelope {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#);
        Envelope::parse(text.into()).unwrap()
    }

    #[test]
    fn the_status_follows_the_error_as_it_is_sent_and_never_the_way_to_the_backend() {
        let rows = [
            (-32602, -32602, Some(400), 400),
            (-32601, -32601, Some(404), 404),
            (-32601, -32601, None, 404),
            (-32021, -32021, None, 400),
            (-32021, -32603, None, 200),
            (-32000, -32603, Some(400), 200),
            (-5, -5, Some(401), 200),
            (-5, -5, Some(403), 200),
            (-5, -5, Some(500), 200),
        ];
        for (came, sent, given, expected) in rows {
            let (came, sent) = (error(came), error(sent));
            assert_eq!(http_status(Era::Modern, &came, sent.bytes(), given), expected, "{came:?} {given:?}");
            assert_eq!(http_status(Era::Legacy, &came, sent.bytes(), given), 200);
        }
    }
}
