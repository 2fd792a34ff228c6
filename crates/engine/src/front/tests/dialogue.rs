//! A front machine with everything around it that it needs, and the sentences of a dialogue with it.

use super::super::*;
use crate::catalog::tests::{bare, view};
use crate::catalog::{Catalog, ListKind};
use crate::chain::Chain;
use crate::command::Watch;
use crate::front::AuthorizedCall;
use crate::keys::Numbers;
use crate::operations::Operations;
use crate::read_cache::Generation;
use bytes::Bytes;
use signalbox_wire::Edits;
use std::time::{Duration, Instant};

pub(super) struct Dialogue {
    pub(super) machine: FrontMachine,
    pub(super) catalog: Catalog,
    pub(super) ready: bool,
    pub(super) calls: Vec<(ExchangeId, AuthorizedCall)>,
    pub(super) now: Instant,
    pub(super) chain: Chain,
    pub(super) numbers: Numbers,
    pub(super) operations: Operations,
    pub(super) task_calls: crate::TaskCalls,
    pub(super) visibility: Option<Arc<dyn crate::catalog::Visibility>>,
    pub(super) message_facts: bool,
    pub(super) instructions: &'static str,
    pub(super) sign_ins: Vec<(Arc<str>, Fault)>,
}

/// How long every event takes to be worked on.
pub(super) const PACE: Duration = Duration::from_micros(3);
pub(super) const STREAM: StreamId = StreamId(1);

impl Dialogue {
    pub(super) fn new(mode: Mode) -> Self {
        let mut catalog = Catalog::new(["a", "b"].map(Arc::from));
        let tools = [r#"{"name":"echo"}"#, r#"{"name":"one"}"#];
        let mut first = view(ListKind::Tools, &tools);
        first.resources = view(ListKind::Resources, &[r#"{"uri":"x://1"}"#]).resources;
        first.prompts = view(ListKind::Prompts, &[r#"{"name":"hello"}"#]).prompts;
        let mut second = view(ListKind::Tools, &[r#"{"name":"echo"}"#]);
        second.resources = view(ListKind::Resources, &[r#"{"uri":"x://1"}"#]).resources;
        catalog.set_view("a", bare(Era::Legacy), first);
        catalog.set_view("b", bare(Era::Legacy), second);
        let machine = FrontMachine::new(SessionKey(1), Caller::anonymous("http"), mode);
        Self {
            machine,
            catalog,
            ready: true,
            calls: Vec::new(),
            now: Instant::now(),
            chain: Chain::default(),
            numbers: Numbers::default(),
            operations: Operations::default(),
            task_calls: crate::TaskCalls::default(),
            visibility: None,
            message_facts: false,
            instructions: "",
            sign_ins: Vec::new(),
        }
    }

    pub(super) fn operational() -> Self {
        let mut dialogue = Self::new(Mode::Pipe);
        dialogue.says(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#);
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        dialogue.event(Event::GeneralStream { stream: STREAM });
        dialogue
    }

    pub(super) fn event(&mut self, event: Event) -> Vec<String> {
        self.commands(event).into_iter().filter_map(|command| self.tell(command)).collect()
    }

    pub(super) fn commands(&mut self, event: Event) -> Vec<Command> {
        let snapshot = self.catalog.snapshot();
        let ready = self.ready;
        let chain = self.chain.clone();
        let visibility = self.visibility.clone();
        let caller = crate::Caller::anonymous("http");
        let sight = visibility.as_deref().map(|visibility| crate::catalog::CallerView::of(visibility, &caller));
        let ports = crate::dialect::DialectPorts {
            labels: &crate::tool_label::NoLabels,
            permissions: &crate::dialect::ScopePermissions,
            audit_run: crate::audit_id::AuditRun::new(0, 0),
            session: Some("s1"),
        };
        let ctx = Context {
            now: self.now,
            unix_ms: &|| 0,
            task_home: &|_| None,
            catalog: &snapshot,
            caller: None,
            user: &crate::Principal::anonymous().into(),
            refusal: None,
            operations: &self.operations,
            task_calls: &self.task_calls,
            numbers: &self.numbers,
            chain: &chain,
            session: None,
            session_started: self.now,
            face: None,
            server_info: r#"{"name":"signalbox","version":"0"}"#,
            instance: "1",
            instructions: self.instructions,
            max_in_flight: 4,
            round_timeout: Duration::from_secs(300),
            changes: &|_, _| Generation::default(),
            dialect: Some(&ports),
            error_detail: crate::fault::ErrorDetail::Full,
            message_facts: self.message_facts,
            trace: None,
            clock: &|| self.now + PACE,
            sight: sight.as_ref(),
            lists_ready: &|_| ready,
            sign_ins: &|| self.sign_ins.clone(),
        };
        let mut out = Vec::new();
        self.machine.handle(event, &ctx, &mut out);
        out
    }

    pub(super) fn says(&mut self, json: &str) -> Vec<String> {
        let message = envelope(json);
        self.event(Event::Received { stream: STREAM, message })
    }

    pub(super) fn answers(&mut self, json: &str) -> Vec<String> {
        let (exchange, _) = self.calls.pop().unwrap();
        self.event(Event::Answered { exchange, message: envelope(json), edits: Edits::new(), status: None })
    }

    pub(super) fn tell(&mut self, command: Command) -> Option<String> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        Some(match command {
            Command::Send(one) if one.is_last() => format!("< {}", text(one.bytes())),
            Command::Send(one) if one.is_droppable() => format!("~ {}", text(one.bytes())),
            Command::Send(one) => format!("- {}", text(one.bytes())),
            Command::Forward { exchange, backend, call } | Command::Watch(Watch { exchange, backend, call, .. }) => {
                let sent = text(&call.edits.apply(call.envelope.bytes()));
                self.calls.push((exchange, call));
                format!("{backend}> {sent}")
            }
            Command::Tell { draft, .. } => format!("all> {}", text(&draft.bytes)),
            Command::Respond { peer, draft, .. } => format!("peer{peer}> {}", text(&draft.bytes)),
            Command::Cancel { backend, .. } => format!("cancel at {backend}"),
            Command::Consult { question, .. } => format!("hold for {}", question.word()),
            Command::Withdraw { .. } => "withdraw".to_owned(),
            Command::Effects(effects) => format!("{effects:?}"),
            Command::AwaitLists { .. } => "wait for lists".to_owned(),
            Command::Dropped(reason) => format!("dropped {reason}"),
            Command::Refused(limit) => format!("refused {}", limit.word()),
            Command::LogLevel { .. } => "level".to_owned(),
            Command::Operational => "operational".to_owned(),
            Command::Listen(listen) => format!("{listen:?}"),
            Command::End { .. } => "end".to_owned(),
            Command::SendAndDiscard { backend, call } | Command::Fork { backend, call, .. } => {
                format!("{backend}>> {}", text(&call.edits.apply(call.envelope.bytes())))
            }
            Command::TaskHome { state, backend } => format!("task {} is at {backend}", state.id),
            // Every round of questions has its end; the dialogues that get there name it.
            Command::Wake { round: Some(_), .. } => return None,
            Command::GiveUp { park } => format!("give up {park}"),
            Command::Wake { after, .. } => format!("wake after {after:?}"),
            Command::KeepRead { uri, terms, .. } => format!("keep {uri} for {:?}", terms.ttl),
            Command::Fact(_) => return None,
        })
    }
}

pub(super) fn envelope(json: &str) -> Envelope {
    Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
}
