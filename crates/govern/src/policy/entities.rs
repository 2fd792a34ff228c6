//! Callers and entries as Cedar entities. The schema here is the only definition of what policies can express.

use cedar_policy::{Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use signalbox_engine::Caller;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_wire::json;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Schema of policies. It omits the arguments of tools: they come from the catalog, which may change.
pub const BASE_SCHEMA: &str = r#"
entity Role, Group, Backend;
entity User in [Role, Group] {
  name: String, trust: String, proof: String, transport: String,
  roles: Set<String>, groups: Set<String>, scopes: Set<String>,
};
entity Tool in [Backend] {
  name: String, backend: String, trust: String, categories: Set<String>, permissions: Set<String>,
  readOnly: Bool, destructive: Bool, idempotent: Bool, openWorld: Bool,
};
entity Prompt in [Backend] { name: String, backend: String };
entity Resource in [Backend] { uri: String, backend: String };
type Circumstances = { arguments: {}, now: datetime, address?: ipaddr };
action call appliesTo { principal: User, resource: Tool, context: Circumstances };
action get appliesTo { principal: User, resource: Prompt, context: Circumstances };
action read appliesTo { principal: User, resource: Resource, context: Circumstances };
"#;

/// Attributes of a caller and an entry besides their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntityAttributes<'a> {
    pub roles: &'a [Box<str>],
    /// Categories of the tool.
    pub categories: Vec<Box<str>>,
    /// Permissions that the tool requires.
    pub permissions: Vec<Box<str>>,
    /// Trust level of the tool.
    pub trust: &'static str,
}

/// Time and address of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Circumstances {
    /// Wall-clock time, in milliseconds since 1970.
    pub unix_ms: u64,
    pub address: Option<IpAddr>,
}

/// Returns the entity type and the action for a kind of entry.
#[must_use]
pub fn words(kind: ListKind) -> (&'static str, &'static str) {
    match kind {
        ListKind::Tools => ("Tool", "call"),
        ListKind::Prompts => ("Prompt", "get"),
        ListKind::Resources | ListKind::Templates => ("Resource", "read"),
    }
}

/// Builds the uid of an entity. `None` never happens for the types of the schema.
#[must_use]
pub fn uid(type_name: &str, id: &str) -> Option<EntityUid> {
    let type_name: EntityTypeName = type_name.parse().ok()?;
    Some(EntityUid::from_type_name_and_id(type_name, EntityId::new(id)))
}

/// Returns the entity id of an entry.
#[must_use]
pub fn entry_id(backend: &str, name: &str) -> String {
    format!("{backend}/{name}")
}

/// Principal, action and resource of a Cedar request, with their entities.
#[derive(Clone, Debug)]
pub struct Parties {
    pub principal: EntityUid,
    pub action: EntityUid,
    pub resource: EntityUid,
    /// Both parties with their attributes and parents.
    pub entities: Entities,
}

impl Parties {
    /// Builds the parties of a request for an entry whose name or URI reads as `read`. `None` if Cedar cannot represent
    /// them, in which case nothing is permitted.
    #[must_use]
    pub fn new(caller: &Caller, entry: &EntryRef<'_>, read: &str, known: &EntityAttributes<'_>) -> Option<Self> {
        let (type_name, action) = words(entry.kind);
        let (user, user_parents) = user(caller, known)?;
        let resource = uid(type_name, &entry_id(entry.backend, entry.name))?;
        let backend = uid("Backend", entry.backend)?;
        let attributes = attributes(entry, read, known);
        let mut all = vec![user.clone(), Entity::with_uid(backend.clone())];
        all.extend(user_parents.into_iter().map(Entity::with_uid));
        all.push(Entity::new(resource.clone(), attributes, HashSet::from([backend])).ok()?);
        let entities = Entities::from_entities(all, None).ok()?;
        Some(Self { principal: user.uid(), action: uid("Action", action)?, resource, entities })
    }
}

fn user(caller: &Caller, known: &EntityAttributes<'_>) -> Option<(Entity, HashSet<EntityUid>)> {
    let identity = caller.identity();
    let standing = identity.standing.as_deref();
    let groups = standing.map_or(&[][..], |standing| &standing.groups);
    let scopes = standing.and_then(|standing| standing.scopes.as_deref()).unwrap_or_default();
    let attributes = HashMap::from([
        ("name".to_owned(), text(caller.principal().as_str())),
        ("trust".to_owned(), text(identity.trust().word())),
        ("proof".to_owned(), text(identity.proof.word())),
        ("transport".to_owned(), text(identity.transport)),
        ("roles".to_owned(), texts(known.roles)),
        ("groups".to_owned(), texts(groups)),
        ("scopes".to_owned(), texts(scopes)),
    ]);
    let roles = known.roles.iter().filter_map(|role| uid("Role", role));
    let parents: HashSet<EntityUid> = roles.chain(groups.iter().filter_map(|group| uid("Group", group))).collect();
    let user = Entity::new(uid("User", caller.principal().as_str())?, attributes, parents.clone()).ok()?;
    Some((user, parents))
}

fn attributes(entry: &EntryRef<'_>, read: &str, known: &EntityAttributes<'_>) -> HashMap<String, RestrictedExpression> {
    let name = if matches!(entry.kind, ListKind::Resources | ListKind::Templates) { "uri" } else { "name" };
    let mut all = HashMap::from([(name.to_owned(), text(read)), ("backend".to_owned(), text(entry.backend))]);
    if entry.kind == ListKind::Tools {
        all.insert("trust".to_owned(), text(known.trust));
        all.insert("categories".to_owned(), texts(&known.categories));
        all.insert("permissions".to_owned(), texts(&known.permissions));
        // Defaults that MCP defines for hints that a tool omits.
        for (attribute, hint, assumed) in [
            ("readOnly", "readOnlyHint", false),
            ("destructive", "destructiveHint", true),
            ("idempotent", "idempotentHint", false),
            ("openWorld", "openWorldHint", true),
        ] {
            let said = entry.definition.and_then(|definition| {
                json::path(definition, &["annotations", hint]).map(|span| span.of(definition) == b"true")
            });
            all.insert(attribute.to_owned(), RestrictedExpression::new_bool(said.unwrap_or(assumed)));
        }
    }
    all
}

/// Builds the context of a request. `arguments` are those that policies look at.
#[must_use]
pub fn context(arguments: Vec<(String, RestrictedExpression)>, around: &Circumstances) -> Option<Context> {
    let mut pairs = vec![
        ("arguments".to_owned(), RestrictedExpression::new_record(arguments).ok()?),
        ("now".to_owned(), RestrictedExpression::new_datetime(instant(around.unix_ms))),
    ];
    if let Some(address) = around.address {
        pairs.push(("address".to_owned(), RestrictedExpression::new_ip(address.to_string())));
    }
    Context::from_pairs(pairs).ok()
}

/// Formats a time for Cedar.
fn instant(unix_ms: u64) -> String {
    signalbox_wire::timestamp::rfc3339_millis(unix_ms)
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

fn texts(values: &[Box<str>]) -> RestrictedExpression {
    RestrictedExpression::new_set(values.iter().map(|value| text(value)))
}
