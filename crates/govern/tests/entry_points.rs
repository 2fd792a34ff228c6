//! Issue 18, point 2: what can be used is listed, and without conditions on arguments what is listed can be used, whatever the
//! policies, the catalog and the caller are, and by whatever request an entry is reached. What is not listed is answered like a
//! name that nobody has.
//!
//! The core has no I/O, so each case is a whole gateway between a request and the command that would reach a backend.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::catalog::{Item, ListKind, Sight, View, ViewKey};
use signalbox_engine::chain::SubjectPattern;
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
use signalbox_govern::permissions::{CallCheck, PermissionSet, Permissions, Role, RoleBook, SwitchCheck};
use signalbox_govern::policy::Policies;
use signalbox_govern::tool_labels::ToolLabels;
use signalbox_wire::{Envelope, Era, Revision};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STREAM: StreamId = StreamId(1);
const INFO: &str = r#"{"name":"signalbox","version":"0"}"#;
const BACKENDS: [&str; 2] = ["files", "mail"];
/// No backend has it, and no pattern names it.
const NOTHING: &str = "zzz";

/// The ways in which a client can use an entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    Call,
    CallAsTask,
    Invoke,
    GetPrompt,
    CompletePrompt,
    Read,
    Subscribe,
    CompleteResource,
}

impl Way {
    const ALL: [Self; 8] = [
        Self::Call,
        Self::CallAsTask,
        Self::Invoke,
        Self::GetPrompt,
        Self::CompletePrompt,
        Self::Read,
        Self::Subscribe,
        Self::CompleteResource,
    ];

    fn kind(self) -> ListKind {
        match self {
            Self::Call | Self::CallAsTask | Self::Invoke => ListKind::Tools,
            Self::GetPrompt | Self::CompletePrompt => ListKind::Prompts,
            Self::Read | Self::Subscribe | Self::CompleteResource => ListKind::Resources,
        }
    }

    /// True if clients of this era have it.
    fn exists_in(self, era: Era) -> bool {
        era == Era::Legacy || !matches!(self, Self::CallAsTask | Self::Invoke | Self::Subscribe)
    }

    fn request(self, name: &str) -> (&'static str, Value) {
        match self {
            Self::Call => ("tools/call", json!({"name": name, "arguments": {"x": 1}})),
            Self::CallAsTask => ("tools/call", json!({"name": name, "arguments": {"x": 1}, "task": {"ttl": 1000}})),
            Self::Invoke => ("tools/invoke", json!({"tool_id": name, "parameters": {"x": 1}})),
            Self::GetPrompt => ("prompts/get", json!({"name": name})),
            Self::CompletePrompt => (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "a", "value": "b"}}),
            ),
            Self::Read => ("resources/read", json!({"uri": name})),
            Self::Subscribe => ("resources/subscribe", json!({"uri": name})),
            Self::CompleteResource => (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": name}, "argument": {"name": "a", "value": "b"}}),
            ),
        }
    }
}

/// What a request came to.
#[derive(Clone, PartialEq, Debug)]
enum End {
    /// It would reach a backend.
    Leaves,
    /// Somebody is asked about it.
    Asked,
    /// It was answered.
    Answered(Value),
}

/// A gateway without I/O.
struct World {
    catalog: Snapshot,
    permissions: Arc<Permissions>,
    labels: Arc<ToolLabels>,
    chain: Chain,
    numbers: Numbers,
    operations: Operations,
    task_calls: TaskCalls,
    now: Instant,
}

impl World {
    fn new(entries: &[Entry], set: PermissionSet) -> Self {
        let mut catalog = Catalog::new(BACKENDS.map(Arc::from));
        for backend in BACKENDS {
            let capabilities = r#"{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#;
            let profile = ServerProfile {
                revision: Revision::LATEST_LEGACY,
                capabilities: Bytes::from_static(capabilities.as_bytes()),
                info: Bytes::from_static(b"{}"),
                instructions: None,
            };
            let mut view = View::empty(Arc::new(profile));
            for kind in ListKind::ALL {
                let own = entries.iter().filter(|entry| entry.kind == kind && entry.backend == backend);
                view.set(kind, own.map(|entry| entry.item()).collect());
            }
            catalog.set_view(backend, ViewKey::shared(Era::Legacy, CapSet::bare()), view);
            catalog.set_listed(backend, true);
        }
        let labels = Arc::new(ToolLabels::default());
        let permissions = Arc::new(Permissions::new(set, Arc::clone(&labels)));
        let chain = Chain::new(vec![Arc::new(SwitchCheck::new(&permissions)), Arc::new(CallCheck::new(&permissions))]);
        Self {
            catalog: catalog.snapshot(),
            permissions,
            labels,
            chain,
            numbers: Numbers::default(),
            operations: Operations::default(),
            task_calls: TaskCalls::default(),
            now: Instant::now(),
        }
    }

    /// A client of this era that has introduced itself as far as its era asks for that.
    fn client(&self, caller: &Caller, era: Era) -> FrontMachine {
        let mode = if era == Era::Modern { Mode::Stateless } else { Mode::Session };
        let mut front = FrontMachine::new(SessionKey(1), caller.clone(), mode);
        if era == Era::Legacy {
            let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
            self.tell(&mut front, caller, &hello);
            self.tell(&mut front, caller, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        front
    }

    /// A request of a client, to its end.
    fn ask(&self, caller: &Caller, era: Era, method: &str, params: &Value) -> End {
        let mut params = params.clone();
        if era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            });
        }
        let dialect = method == "tools/invoke";
        let mut front = if dialect {
            let mut front = FrontMachine::new(SessionKey(1), caller.clone(), Mode::Session);
            front.speak_dialect();
            front
        } else {
            self.client(caller, era)
        };
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let mut end = None;
        for command in self.tell(&mut front, caller, &message) {
            match command {
                Command::Forward { .. } | Command::Watch(_) => end = Some(End::Leaves),
                Command::Consult { .. } => end = Some(End::Asked),
                Command::Send(message) if message.is_last() => {
                    let mut answer: Value = serde_json::from_slice(&message.into_bytes()).unwrap();
                    // Its audit id is of this request alone.
                    if let Some(data) = answer["error"]["data"].as_object_mut() {
                        data.remove("security_context");
                    }
                    end = Some(End::Answered(answer));
                }
                _ => {}
            }
        }
        end.unwrap_or_else(|| panic!("{method} {params} came to nothing"))
    }

    fn tell(&self, front: &mut FrontMachine, caller: &Caller, message: &Value) -> Vec<Command> {
        let sight = Sight::of(&*self.permissions, caller);
        let labels = Arc::clone(&self.labels);
        let ports = DialectPorts {
            labels: &*labels,
            permissions: &*self.permissions,
            audit_run: AuditRun::new(1, 1),
            session: None,
        };
        let ctx = Context {
            now: self.now,
            unix_ms: &|| 1_700_000_000_000,
            catalog: &self.catalog,
            caller: None,
            principal: caller.principal(),
            refusal: None,
            operations: &self.operations,
            task_calls: &self.task_calls,
            numbers: &self.numbers,
            chain: &self.chain,
            session: None,
            session_started: self.now,
            server_info: INFO,
            face: None,
            instructions: "",
            max_in_flight: 64,
            round_timeout: Duration::from_secs(60),
            changes: &|_, _| Generation::default(),
            dialect: Some(&ports),
            error_detail: signalbox_engine::fault::ErrorDetail::Full,
            message_facts: false,
            trace: None,
            task_home: &|_| None,
            clock: &Instant::now,
            sight: Some(&sight),
            lists_ready: &|_| true,
            sign_ins: &Vec::new,
        };
        let message = Envelope::parse(Bytes::from(message.to_string())).unwrap();
        let mut commands = Vec::new();
        front.handle(Event::Received { stream: STREAM, message }, &ctx, &mut commands);
        commands
    }

    /// The names that a list shows.
    fn listed(&self, caller: &Caller, era: Era, kind: ListKind) -> BTreeSet<String> {
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

/// An entry of the random catalog. A plain name belongs to one backend only, so that each is exposed under its own.
#[derive(Clone, Debug)]
struct Entry {
    kind: ListKind,
    backend: &'static str,
    name: String,
    read_only: bool,
}

impl Entry {
    fn item(&self) -> Item {
        let json = match self.kind {
            ListKind::Tools => json!({"name": self.name, "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": self.read_only}, "execution": {"taskSupport": "optional"}}),
            ListKind::Prompts => json!({"name": self.name}),
            ListKind::Resources => json!({"uri": self.name, "name": "r"}),
            ListKind::Templates => json!({"uriTemplate": self.name, "name": "t"}),
        };
        Item::read(self.kind, Bytes::from(json.to_string())).unwrap()
    }
}

const NAMES: [&str; 5] = ["aqa", "bqb", "cqc", "read_aqa", "write_bqb"];

/// The name of the entry at this place of the pool, which has no other place.
fn pooled(kind: ListKind, backend: usize, at: usize) -> String {
    let name = format!("{}{}", NAMES[at], ["", "2"][backend]);
    if kind == ListKind::Resources { format!("note://{name}") } else { name }
}

fn catalog() -> impl Strategy<Value = Vec<Entry>> {
    let kinds = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
    prop::collection::vec((any::<bool>(), any::<bool>()), kinds.len() * 2 * NAMES.len()).prop_map(move |picks| {
        let place = |at: usize| (kinds[at % 3], at / 3 % 2, at / 6);
        let picked = picks.into_iter().enumerate().filter(|(_, (there, _))| *there);
        let entry = |(at, (_, read_only))| {
            let (kind, backend, name) = place(at);
            Entry { kind, backend: BACKENDS[backend], name: pooled(kind, backend, name), read_only }
        };
        picked.map(entry).collect()
    })
}

fn patterns() -> impl Strategy<Value = Vec<SubjectPattern>> {
    let all =
        ["*", "files", "mail/*", "files/aqa", "*/read_*", "mail/*2", "files/note://aqa", "files/note://*", "*/b*"];
    prop::collection::vec(prop::sample::select(all.to_vec()), 0..3)
        .prop_map(|texts| texts.into_iter().map(SubjectPattern::new).collect())
}

/// Roles that allow, deny and ask; none that may only read, which shows more than it lets use.
fn roles() -> impl Strategy<Value = Vec<Role>> {
    let role = (patterns(), patterns(), patterns());
    prop::collection::vec(role.prop_map(|(allow, deny, ask)| Role { permissions: Vec::new(), allow, deny, ask }), 0..3)
}

/// Policies; the flag says whether one looks at arguments.
fn policies() -> impl Strategy<Value = (String, bool)> {
    let effect = prop::sample::select(vec!["permit", "permit", "forbid", "@ask(\"?\") forbid"]);
    let scope = prop::sample::select(vec![
        ("action", "resource"),
        ("action == Action::\"call\"", r#"resource == Tool::"files/aqa""#),
        ("action == Action::\"call\"", r#"resource in Backend::"mail""#),
        ("action == Action::\"get\"", "resource is Prompt"),
        ("action == Action::\"read\"", "resource is Resource"),
    ]);
    let condition = prop::sample::select(vec![
        "",
        r#"when { principal in Role::"r0" }"#,
        r#"unless { principal in Role::"r1" }"#,
        r#"when { resource.backend == "files" }"#,
        "when { context.arguments.x == 1 }",
        "unless { context.arguments has y }",
    ]);
    let whole = (effect, scope, condition).prop_map(|(effect, (action, resource), condition)| {
        // Only calls of tools have arguments.
        let action = if condition.contains("arguments") { "action == Action::\"call\"" } else { action };
        let resource = if condition.contains("arguments") { "resource" } else { resource };
        format!("{effect}(principal, {action}, {resource}) {condition};")
    });
    prop::collection::vec(whole, 0..5).prop_map(|texts| {
        let text = texts.join("\n");
        let looks = text.contains("context.arguments");
        (text, looks)
    })
}

fn caller(roles: &[usize]) -> Caller {
    let roles = roles.iter().map(|role| format!("r{role}").into()).collect();
    Caller::new(Identity {
        principal: Principal::named("ada"),
        proof: Proof::ApiKey,
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(Standing { roles, ..Standing::default() })),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn issue_18_2_called_implies_listed_by_every_way_in(
        entries in catalog(),
        roles in roles(),
        (text, looks_at_arguments) in policies(),
        held in prop::sample::subsequence(vec![0, 1, 2], 0..=3),
    ) {
        let policies = (!text.is_empty()).then(|| Policies::load(&[("p.cedar".to_owned(), text.clone())]).unwrap());
        let named = roles.into_iter().enumerate().map(|(at, role)| (format!("r{at}"), role));
        let set = PermissionSet {
            roles: RoleBook::new(named, None),
            policies: policies.map(Arc::new),
            ask_timeout: Duration::from_secs(60),
            ..PermissionSet::default()
        };
        let (world, ada) = (World::new(&entries, set), caller(&held));
        for era in [Era::Legacy, Era::Modern] {
            for way in Way::ALL.into_iter().filter(|way| way.exists_in(era)) {
                let listed = world.listed(&ada, era, way.kind());
                let (method, params) = way.request(NOTHING);
                let nothing = world.ask(&ada, era, method, &params);
                for entry in entries.iter().filter(|entry| entry.kind == way.kind()) {
                    let (method, params) = way.request(&entry.name);
                    let end = world.ask(&ada, era, method, &params);
                    let place = format!("{way:?} of {entry:?} in {era:?}, listed {listed:?}: {end:?}; {text}");
                    if matches!(end, End::Leaves | End::Asked) {
                        prop_assert!(listed.contains(&entry.name), "used and not listed: {place}");
                    } else if listed.contains(&entry.name) {
                        prop_assert!(looks_at_arguments, "listed and not usable: {place}");
                    } else {
                        let unnamed = |end: &End, name: &str| format!("{end:?}").replace(name, "NAME");
                        prop_assert_eq!(unnamed(&end, &entry.name), unnamed(&nothing, NOTHING), "{}", place);
                    }
                }
            }
        }
    }
}
