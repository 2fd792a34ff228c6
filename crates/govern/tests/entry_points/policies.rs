//! Random catalogs, roles, policies and switches.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use signalbox_engine::catalog::{Item, ListKind};
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, Identity, Principal, Proof};
use signalbox_govern::permissions::{PermissionSet, Role, RoleBook, Switch, SwitchOffReason, SwitchTarget, Switches};
use signalbox_govern::policy::Policies;
use std::sync::Arc;
use std::time::Duration;

pub const BACKENDS: [&str; 2] = ["files", "mail"];
const NAMES: [&str; 5] = ["aqa", "bqb", "cqc", "read_aqa", "write_bqb"];

/// An entry of the random catalog. A plain name belongs to one backend only, so that each is exposed under its own.
#[derive(Clone, Debug)]
pub struct Entry {
    pub kind: ListKind,
    pub backend: &'static str,
    pub name: String,
    pub read_only: bool,
}

impl Entry {
    pub fn item(&self) -> Item {
        Item::read(self.kind, self.raw()).unwrap()
    }

    /// What its backend lists it as.
    pub fn raw(&self) -> Bytes {
        let json = match self.kind {
            ListKind::Tools => json!({"name": self.name, "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": self.read_only}, "execution": {"taskSupport": "optional"}}),
            ListKind::Prompts => json!({"name": self.name}),
            ListKind::Resources => json!({"uri": self.name, "name": "r"}),
            ListKind::Templates => json!({"uriTemplate": self.name, "name": "t"}),
        };
        Bytes::from(json.to_string())
    }

    /// The resource that a client reads by way of this template.
    pub fn filled_in(&self) -> Self {
        Self { kind: ListKind::Resources, name: self.name.replace("{id}", "7"), ..self.clone() }
    }
}

/// The name of the entry at this place of the pool, which has no other place.
fn pooled(kind: ListKind, backend: usize, at: usize) -> String {
    let name = format!("{}{}", NAMES[at], ["", "2"][backend]);
    match kind {
        ListKind::Tools | ListKind::Prompts => name,
        ListKind::Resources => format!("note://{name}"),
        ListKind::Templates => format!("note://of/{name}/{{id}}"),
    }
}

pub fn catalog() -> impl Strategy<Value = Vec<Entry>> {
    let kinds = ListKind::ALL;
    prop::collection::vec((prop::bool::weighted(0.3), any::<bool>()), kinds.len() * 2 * NAMES.len()).prop_map(
        move |picks| {
            let place = |at: usize| (kinds[at % 4], at / 4 % 2, at / 8);
            let picked = picks.into_iter().enumerate().filter(|(_, (there, _))| *there);
            let entry = |(at, (_, read_only))| {
                let (kind, backend, name) = place(at);
                Entry { kind, backend: BACKENDS[backend], name: pooled(kind, backend, name), read_only }
            };
            picked.map(entry).collect()
        },
    )
}

fn pattern() -> impl Strategy<Value = EntryPattern> {
    let all = [
        "*",
        "files",
        "mail/*",
        "files/aqa",
        "*/read_*",
        "mail/*2",
        "files/note://aqa",
        "files/note://*",
        "files/note://of/*",
        "*/note://of/bqb/7",
        "*/b*",
    ];
    prop::sample::select(all.to_vec()).prop_map(EntryPattern::new)
}

fn patterns() -> impl Strategy<Value = Vec<EntryPattern>> {
    prop::collection::vec(pattern(), 0..3)
}

/// Roles that allow, deny and ask; none that may only read, which shows more than it lets use.
fn roles() -> impl Strategy<Value = Vec<Role>> {
    let role = (patterns(), patterns(), patterns());
    let role = role.prop_map(|(allow, deny, ask)| Role { permissions: vec!["tools.execute".into()], allow, deny, ask });
    prop::collection::vec(role, 0..3)
}

fn policies() -> impl Strategy<Value = String> {
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
    prop::collection::vec(whole, 0..5).prop_map(|texts| texts.join("\n"))
}

/// What is configured, and what a test must know of it.
#[derive(Clone, Debug)]
pub struct Rulebook {
    pub set: PermissionSet,
    /// One of the policies looks at arguments.
    pub looks_at_arguments: bool,
    /// A role or a policy wants somebody to be asked.
    pub asks: bool,
    /// Somebody is told more of an entry than that it is unknown.
    pub reveals: bool,
    text: String,
}

impl std::fmt::Display for Rulebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}; {}; {:?}", self.set.roles, self.text, self.set.switches)
    }
}

pub fn rulebook() -> impl Strategy<Value = Rulebook> {
    let off = prop::option::weighted(0.2, pattern());
    (roles(), policies(), prop::bool::weighted(0.2), off).prop_map(|(roles, text, reveal, off)| {
        let policies = (!text.is_empty()).then(|| Policies::load(&[("p.cedar".to_owned(), text.clone())]).unwrap());
        let asks = text.contains("@ask") || roles.iter().any(|role| !role.ask.is_empty());
        let reveals = reveal || off.is_some();
        let named = roles.into_iter().enumerate().map(|(at, role)| (format!("r{at}"), role));
        let off =
            off.map(|it| Switch { target: SwitchTarget::Entries(it), off: SwitchOffReason::Killed, reason: "".into() });
        let set = PermissionSet {
            roles: RoleBook::new(named, None),
            policies: policies.map(Arc::new),
            switches: Switches(off.into_iter().collect()),
            reveal,
            ask_timeout: Duration::from_secs(60),
            ..PermissionSet::default()
        };
        let looks_at_arguments = text.contains("context.arguments");
        Rulebook { set, looks_at_arguments, asks, reveals, text }
    })
}

/// A set that restricts, and lets everybody use everything.
pub fn all_allowed() -> PermissionSet {
    let everything =
        Role { permissions: vec!["*".into()], allow: vec![EntryPattern::new("*")], deny: Vec::new(), ask: Vec::new() };
    PermissionSet { roles: RoleBook::new([("all".to_owned(), everything)], Some("all")), ..PermissionSet::default() }
}

pub fn roles_held() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::subsequence(vec![0, 1, 2], 0..=3)
}

pub fn caller(name: &str, roles: &[usize]) -> Caller {
    let mut roles: Vec<Box<str>> = roles.iter().map(|role| format!("r{role}").into()).collect();
    roles.push("all".into());
    Caller::new(Identity {
        principal: Principal::named(name),
        proof: Proof::ApiKey,
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(Standing { roles, ..Standing::default() })),
    })
}
