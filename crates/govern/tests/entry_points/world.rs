//! A gateway without I/O: catalog, permissions, interceptors, and clients whose messages are told to front machines.

use super::policies::{BACKENDS, Entry};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::catalog::{CallerView, ListKind, View, ViewKey, Visibility as _};
use signalbox_engine::chain::Interceptor;
use signalbox_engine::command::Listen;
use signalbox_engine::dialect::DialectPorts;
use signalbox_engine::front::Mode;
use signalbox_engine::keys::Numbers;
use signalbox_engine::operations::Operations;
use signalbox_engine::read_cache::Generation;
use signalbox_engine::standing::Standing;
use signalbox_engine::task_calls::TaskCalls;
use signalbox_engine::{
    Caller, CapSet, Catalog, Chain, Command, Context, Event, FrontMachine, Identity, Principal, Proof, ServerProfile,
    SessionKey, Snapshot, StreamId,
};
use signalbox_govern::permissions::{CallCheck, PermissionSet, Permissions, SwitchCheck};
use signalbox_govern::tool_labels::ToolLabels;
use signalbox_wire::{Edits, Envelope, Era, Revision};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const STREAM: StreamId = StreamId(1);
const INFO: &str = r#"{"name":"signalbox","version":"0"}"#;
const OFFERED: &str = r#"{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},
    "tasks":{"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// What a request came to.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// It would reach this backend, which knows what is wanted by this name.
    Leaves(String, String),
    /// Somebody is asked about it.
    Asked,
    /// It was answered.
    Answered(Value),
}

impl End {
    pub fn leaves(&self) -> bool {
        matches!(self, Self::Leaves(..))
    }

    /// True unless it was refused.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Leaves(..) | Self::Asked => true,
            Self::Answered(answer) => answer.get("result").is_some(),
        }
    }
}

/// One client, and the machine that serves it.
pub struct Client {
    pub front: FrontMachine,
    pub caller: Caller,
    pub era: Era,
}

pub struct World {
    catalog: Snapshot,
    pub permissions: Arc<Permissions>,
    pub labels: Arc<ToolLabels>,
    chain: Chain,
    numbers: Numbers,
    operations: Operations,
    task_calls: TaskCalls,
    /// Where the tasks of principals are, as the runtime's directory would know.
    homes: RefCell<HashMap<(Principal, String), Arc<str>>>,
    sessions: Cell<u64>,
    now: Instant,
}

impl World {
    /// `behind` come after the permissions, as rules do.
    pub fn new(entries: &[Entry], set: PermissionSet, revision: Revision, behind: Vec<Arc<dyn Interceptor>>) -> Self {
        Self::of_backends(&BACKENDS, entries, set, revision, behind)
    }

    /// One with these backends instead of the usual ones.
    pub fn of_backends(
        backends: &[&'static str],
        entries: &[Entry],
        set: PermissionSet,
        revision: Revision,
        behind: Vec<Arc<dyn Interceptor>>,
    ) -> Self {
        let mut catalog = Catalog::new(backends.iter().map(|&name| Arc::from(name)));
        for &backend in backends {
            let profile = ServerProfile {
                revision,
                capabilities: Bytes::from_static(OFFERED.as_bytes()),
                info: Bytes::from_static(b"{}"),
                instructions: None,
            };
            let mut view = View::empty(Arc::new(profile));
            for kind in ListKind::ALL {
                let own = entries.iter().filter(|entry| entry.kind == kind && entry.backend == backend);
                view.set(kind, own.map(Entry::item).collect());
            }
            // A backend of the new era shows clients of both the same.
            for era in [Era::Legacy, Era::Modern]
                .into_iter()
                .filter(|era| revision.era() == Era::Modern || *era == Era::Legacy)
            {
                catalog.set_view(backend, ViewKey::shared(era, CapSet::bare()), view.clone());
            }
            catalog.set_listed(backend, true);
        }
        let labels = Arc::new(ToolLabels::default());
        let permissions = Arc::new(Permissions::new(set, Arc::clone(&labels)));
        let mut all: Vec<Arc<dyn Interceptor>> =
            vec![Arc::new(SwitchCheck::new(&permissions)), Arc::new(CallCheck::new(&permissions))];
        all.extend(behind);
        Self {
            catalog: catalog.snapshot(),
            permissions,
            labels,
            chain: Chain::new(all),
            numbers: Numbers::default(),
            operations: Operations::default(),
            task_calls: TaskCalls::default(),
            homes: RefCell::default(),
            sessions: Cell::new(0),
            now: Instant::now(),
        }
    }

    fn front(&self, caller: &Caller, era: Era) -> Client {
        let mode = if era == Era::Modern { Mode::Stateless } else { Mode::Session };
        self.sessions.set(self.sessions.get() + 1);
        let front = FrontMachine::new(SessionKey(self.sessions.get()), caller.clone(), mode);
        Client { front, caller: caller.clone(), era }
    }

    /// A client of this era that has introduced itself as far as its era asks for that.
    pub fn client(&self, caller: &Caller, era: Era) -> Client {
        self.declaring(caller, era, &json!({}))
    }

    /// One that declares these capabilities when it introduces itself.
    pub fn declaring(&self, caller: &Caller, era: Era, capabilities: &Value) -> Client {
        let mut client = self.front(caller, era);
        if era == Era::Legacy {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": {"name": "c", "version": "1"}});
            self.says(&mut client, &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
            self.says(&mut client, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            self.event(&mut client, Event::GeneralStream { stream: STREAM });
        }
        client
    }

    /// A client of the governed dialect.
    pub fn dialect_client(&self, caller: &Caller) -> Client {
        let mut client = self.front(caller, Era::Legacy);
        client.front.speak_dialect();
        client
    }

    /// What the client is answered once the backend has given this result to the request that these commands sent it.
    pub fn answered(&self, client: &mut Client, commands: &[Command], result: &Value) -> Value {
        let forwarded = |command: &Command| match command {
            Command::Forward { exchange, .. } => Some(*exchange),
            _ => None,
        };
        let exchange = commands.iter().find_map(forwarded).expect("it leaves");
        let message = envelope(&json!({"jsonrpc": "2.0", "id": 1, "result": result}));
        let answered = Event::Answered { exchange, message, edits: Edits::new(), status: None };
        match end_of(&self.event(client, answered)) {
            Some(End::Answered(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// A request of a client of its own, to its end.
    pub fn ask(&self, caller: &Caller, era: Era, method: &str, params: &Value) -> End {
        let mut client = if method == "tools/invoke" { self.dialect_client(caller) } else { self.client(caller, era) };
        let commands = self.request(&mut client, method, params);
        end_of(&commands).unwrap_or_else(|| panic!("{method} {params} came to nothing"))
    }

    /// What a request of this client sets off.
    pub fn request(&self, client: &mut Client, method: &str, params: &Value) -> Vec<Command> {
        let mut params = params.clone();
        if client.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities":
                    {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            });
        }
        self.says(client, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    }

    pub fn says(&self, client: &mut Client, message: &Value) -> Vec<Command> {
        self.event(client, Event::Received { stream: STREAM, message: envelope(message) })
    }

    pub fn event(&self, client: &mut Client, event: Event) -> Vec<Command> {
        let Client { front, caller, .. } = client;
        let sight = (!self.permissions.is_open()).then(|| CallerView::of(&*self.permissions, caller));
        let ports = DialectPorts {
            labels: &*self.labels,
            permissions: &*self.permissions,
            audit_run: AuditRun::new(1, 1),
            session: None,
        };
        let home = |task: &str| self.homes.borrow().get(&(caller.principal().clone(), task.to_owned())).cloned();
        let ctx = Context {
            now: self.now,
            unix_ms: &|| 1_700_000_000_000,
            catalog: &self.catalog,
            caller: None,
            user: &caller.principal().clone().into(),
            refusal: None,
            operations: &self.operations,
            task_calls: &self.task_calls,
            numbers: &self.numbers,
            chain: &self.chain,
            session: None,
            session_started: self.now,
            server_info: INFO,
            instance: "1",
            face: None,
            instructions: "",
            max_in_flight: 64,
            round_timeout: Duration::from_secs(60),
            changes: &|_, _| Generation::default(),
            dialect: Some(&ports),
            error_detail: signalbox_engine::fault::ErrorDetail::Full,
            message_facts: false,
            trace: None,
            task_home: &home,
            clock: &Instant::now,
            sight: sight.as_ref(),
            lists_ready: &|_| true,
            sign_ins: &Vec::new,
        };
        let mut commands = Vec::new();
        front.handle(event, &ctx, &mut commands);
        for command in &commands {
            if let Command::TaskHome { state, backend } = command {
                let key = (caller.principal().clone(), state.id.clone());
                self.homes.borrow_mut().insert(key, Arc::clone(backend));
            }
        }
        commands
    }

    /// Notes where a task is that an old backend has for a new client, as the runtime does when it takes it in.
    pub fn hosts(&self, caller: &Caller, task: &str, backend: &str) {
        self.homes.borrow_mut().insert((caller.principal().clone(), task.to_owned()), backend.into());
    }

    /// The names that a list shows.
    pub fn listed(&self, caller: &Caller, era: Era, kind: ListKind) -> BTreeSet<String> {
        let (method, member, key) = match kind {
            ListKind::Tools => ("tools/list", "tools", "name"),
            ListKind::Prompts => ("prompts/list", "prompts", "name"),
            ListKind::Resources => ("resources/list", "resources", "uri"),
            ListKind::Templates => ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        };
        let End::Answered(answer) = self.ask(caller, era, method, &json!({})) else { panic!("a list is answered") };
        let items = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }
}

/// The caller `ada` with this standing, known by an API key.
pub fn ada(standing: Standing) -> Caller {
    Caller::new(Identity {
        principal: Principal::named("ada"),
        proof: Proof::ApiKey,
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(standing)),
    })
}

pub fn envelope(message: &Value) -> Envelope {
    Envelope::parse(Bytes::from(message.to_string())).unwrap()
}

/// What these commands bring a request to; `None` if it waits.
pub fn end_of(commands: &[Command]) -> Option<End> {
    let mut end = None;
    for command in commands {
        match command {
            Command::Forward { backend, call, .. } => {
                end = Some(End::Leaves(backend.to_string(), call.name.clone().unwrap_or_default().into()));
            }
            Command::Watch(watch) => end = Some(End::Leaves(watch.backend.to_string(), watch.uri.to_string())),
            Command::Listen(Listen::Open { follow, .. }) => {
                end = Some(match follow.resources().iter().chain(follow.tasks()).next() {
                    Some((backend, name)) => End::Leaves(backend.to_string(), name.to_string()),
                    None => End::Answered(json!({"error": "nothing is followed"})),
                });
            }
            Command::Consult { .. } => end = Some(End::Asked),
            Command::Send(message) if message.is_last() => {
                let mut answer: Value = serde_json::from_slice(message.bytes()).unwrap();
                // Its audit id is of this request alone.
                if let Some(data) = answer["error"]["data"].as_object_mut() {
                    data.remove("security_context");
                }
                end = Some(End::Answered(answer));
            }
            _ => {}
        }
    }
    end
}
