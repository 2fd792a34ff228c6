//! Lists and calls decided by one set.

use super::*;
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::dialect::PermissionSource;
use signalbox_engine::dialect::validation::{ConstraintKind, ToolUse};
use signalbox_engine::standing::Standing;
use signalbox_engine::{Identity, Principal, Proof};

fn texts(words: &[&str]) -> Vec<Box<str>> {
    words.iter().map(|&word| word.into()).collect()
}

fn caller(name: &str, roles: &[&str]) -> Caller {
    let standing = Standing { roles: texts(roles), ..Standing::default() };
    Caller::new(Identity {
        principal: Principal::named(name),
        proof: Proof::ApiKey,
        claims: Vec::new(),
        address: None,
        transport: "http",
        standing: Some(Arc::new(standing)),
    })
}

fn role(permissions: &[&str], allow: &[&str]) -> Role {
    let allow = allow.iter().map(|text| EntryPattern::new(text)).collect();
    Role { permissions: texts(permissions), allow, deny: Vec::new(), ask: Vec::new() }
}

fn entry<'a>(backend: &'a str, name: &'a str) -> EntryRef<'a> {
    EntryRef { kind: ListKind::Tools, backend, name, definition: None }
}

fn permissions(set: PermissionSet) -> Permissions {
    Permissions::new(set, Arc::new(ToolLabels::default()))
}

fn is_usable(permissions: &Permissions, caller: &Caller, entry: &EntryRef<'_>) -> bool {
    matches!(permissions.access(caller, entry, None, &Circumstances::default()), Access::Usable(_))
}

fn roles() -> RoleBook {
    let roles = [("reader", role(&["tools.read"], &["files"])), ("writer", role(&["tools.execute"], &["files"]))];
    RoleBook::new(roles.map(|(name, role)| (name.to_owned(), role)), None)
}

#[test]
fn without_any_permissions_everybody_sees_and_uses_everything() {
    let open = permissions(PermissionSet::default());
    let eve = Caller::anonymous("http");
    assert!(open.is_open() && open.lists(&eve, &entry("a", "b")) && is_usable(&open, &eve, &entry("a", "b")));
}

/// Who may not see a tool does not find it in lists, and is told that there is none; who may only read finds it.
/// Proves NO-2.
#[test]
fn lists_and_calls_agree_for_every_role() {
    let set = permissions(PermissionSet { roles: roles(), ..PermissionSet::default() });
    let (ada, bob, eve) = (caller("ada", &["writer"]), caller("bob", &["reader"]), caller("eve", &["other"]));
    let read = entry("files", "read");
    assert!(set.lists(&ada, &read) && is_usable(&set, &ada, &read));
    assert!(set.lists(&bob, &read) && !is_usable(&set, &bob, &read) && set.reveals(&bob, &read));
    assert!(!set.lists(&eve, &read) && !set.reveals(&eve, &read) && !set.shows_backend(&eve, "files"));
    assert_ne!(set.audience(&ada), set.audience(&bob));
    assert_eq!(set.audience(&ada), set.audience(&caller("carl", &["writer"])), "a list is rendered once for each role");
    let told = permissions(PermissionSet { roles: roles(), reveal: true, ..PermissionSet::default() });
    assert!(!told.lists(&eve, &read) && told.reveals(&eve, &read));
}

/// Hidden from lists and still named in the answer to those who could see it.
/// Proves NO-9.
#[test]
fn a_switch_hides_an_entry_and_is_set_and_lifted_while_running() {
    let set = permissions(PermissionSet { roles: roles(), ..PermissionSet::default() });
    let (ada, eve, write) = (caller("ada", &["writer"]), caller("eve", &[]), entry("files", "write"));
    let before = set.audience(&ada);
    let target = SwitchTarget::Entries(EntryPattern::new("files/w*"));
    set.switch(Switches(vec![Switch { target, off: SwitchOffReason::Killed, reason: "".into() }]));
    assert!(!set.lists(&ada, &write) && set.reveals(&ada, &write) && set.lists(&ada, &entry("files", "read")));
    assert!(!set.reveals(&eve, &write));
    assert_ne!(set.audience(&ada), before, "no list from before is shown");
    set.switch(Switches::default());
    assert!(set.lists(&ada, &write));
}

#[test]
fn a_closed_backend_is_never_revealed() {
    let callers = vec![("files".into(), vec!["user:*".to_owned()])];
    let set = permissions(PermissionSet { callers, reveal: true, ..PermissionSet::default() });
    let (ada, eve) = (caller("user:ada", &[]), caller("eve", &[]));
    assert!(set.lists(&ada, &entry("files", "read")) && set.lists(&eve, &entry("other", "read")));
    assert!(!set.reveals(&eve, &entry("files", "read")) && !set.shows_backend(&eve, "files"));
}

/// The permissions of the caller are looked at first, and the one that is lacking is named.
/// Proves G-13 and G-14.
#[test]
fn permissions_are_judged_before_policies() {
    use crate::tool_labels::LabelRule;
    let rule = LabelRule {
        pattern: EntryPattern::new("files/read"),
        categories: Vec::new(),
        trust: None,
        permissions: texts(&["read:filesystem"]),
        version: None,
    };
    let labels = Arc::new(ToolLabels::new(Vec::new(), vec![rule]));
    let policy = "@id(\"no reads\") forbid(principal, action, resource == Tool::\"files/read\");".to_owned();
    let policies = Policies::load(&[("a.cedar".to_owned(), policy)]).unwrap();
    let all =
        [("reader", role(&["tools.execute", "read:filesystem"], &["*"])), ("other", role(&["tools.execute"], &["*"]))];
    let roles = RoleBook::new(all.map(|(name, role)| (name.to_owned(), role)), None);
    let set = PermissionSet { roles, policies: Some(Arc::new(policies)), ..PermissionSet::default() };
    let set = Permissions::new(set, labels);
    let access =
        |roles: &[&str]| set.access(&caller("ada", roles), &entry("files", "read"), None, &Circumstances::default());
    let Access::Hidden(lacking) = access(&["other"]) else { panic!("it is not lacking") };
    assert_eq!(lacking.permission.as_deref(), Some("read:filesystem"));
    assert_eq!(lacking.grounds.reason, "User lacks required permission");
    let Access::Hidden(forbidden) = access(&["reader"]) else { panic!("it is not forbidden") };
    assert_eq!(forbidden.grounds.policy.as_deref(), Some("no reads"));
}

/// What a policy permits under one way of writing a URI must be permitted as the backend reads it too.
#[test]
fn a_uri_is_judged_as_it_is_written_and_as_it_is_read() {
    let policy = "permit(principal, action, resource is Resource) when { resource.uri like \"file:///public/*\" };";
    let policies = Policies::load(&[("a.cedar".to_owned(), policy.to_owned())]).unwrap();
    let set = permissions(PermissionSet { policies: Some(Arc::new(policies)), ..PermissionSet::default() });
    let resource = |name| EntryRef { kind: ListKind::Resources, backend: "files", name, definition: None };
    let ada = caller("ada", &[]);
    assert!(is_usable(&set, &ada, &resource("file:///public/a")));
    for other in ["file:///private/a", "file:///public/../private/a", "file:///public/%2e%2e/private/a"] {
        assert!(!is_usable(&set, &ada, &resource(other)), "{other}");
    }
}

/// The patterns of resources that a user may use.
/// Proves G-12.
#[test]
fn a_user_is_kept_to_its_resources() {
    let set = permissions(PermissionSet { callers: vec![("x".into(), vec![])], ..PermissionSet::default() });
    let standing = Standing { resources: texts(&["file:///public/*"]), ..Standing::default() };
    let identity = Identity { standing: Some(Arc::new(standing)), ..caller("ada", &[]).identity().clone() };
    let ada = Caller::new(identity);
    let resource = |name| EntryRef { kind: ListKind::Resources, backend: "files", name, definition: None };
    assert!(is_usable(&set, &ada, &resource("file:///public/a")) && is_usable(&set, &ada, &entry("files", "read")));
    assert!(!is_usable(&set, &ada, &resource("file:///public/../etc")));
    let template = |name| EntryRef { kind: ListKind::Templates, ..resource(name) };
    assert!(set.lists(&ada, &template("file:///public/{name}")));
    for hidden in ["file:///private/{name}", "db://{x}", "file:///{+path}", "{+uri}"] {
        assert!(!set.lists(&ada, &template(hidden)), "{hidden}");
    }
}

/// Permissions, then policies; a lacking permission is named, and consent is a constraint.
/// Proves G-13 and G-14.
#[test]
fn a_use_is_validated_in_the_specified_order() {
    let asks = Role { ask: vec![EntryPattern::new("files/write")], ..role(&["tools.execute"], &["files"]) };
    let book = [("asker", asks), ("reader", role(&["tools.read"], &["files"]))];
    let roles = RoleBook::new(book.map(|(name, role)| (name.to_owned(), role)), None);
    let set = permissions(PermissionSet { roles, ..PermissionSet::default() });
    let validate = |who: &Caller, entry: EntryRef<'_>| {
        set.validate(&ToolUse { caller: who, entry, tool_id: "t", parameters: b"{}", unix_ms: 0 })
    };
    let (ada, bob, eve) = (caller("ada", &["asker"]), caller("bob", &["reader"]), caller("eve", &["other"]));
    assert_eq!(validate(&ada, entry("files", "read")).unwrap(), []);
    let asked = validate(&ada, entry("files", "write")).unwrap();
    assert!(matches!(&asked[..], [one] if one.kind == ConstraintKind::Consent), "{asked:?}");
    let denied = validate(&bob, entry("files", "read")).unwrap_err();
    assert_eq!((denied.dialect_word(), denied.data[0].0), ("permission_denied", "permission"), "{denied:?}");
    let hidden = validate(&eve, entry("files", "read")).unwrap_err();
    assert_eq!(hidden.message, "Unknown tool: t");
}

fn grant(to: &str, entries: &[&str], until_ms: u64, breaks_glass: bool) -> Arc<TimedGrant> {
    let entries = entries.iter().map(|text| EntryPattern::new(text)).collect();
    Arc::new(TimedGrant { name: "grant:1".into(), to: to.into(), entries, until_ms, breaks_glass })
}

/// A grant makes up for what is lacking and for consent; what a role denies or a policy forbids stays so; it ends to
/// the millisecond.
#[test]
fn a_grant_makes_up_for_what_is_lacking_and_no_more() {
    let policies = "permit(principal in Role::\"writer\", action, resource);\n@id(\"ask\") @ask(\"sure?\") forbid(principal, action, resource == Tool::\"files/write\");\n\
                    @id(\"never\") forbid(principal, action, resource == Tool::\"files/drop\");";
    let policies = Some(Arc::new(Policies::load(&[("a.cedar".to_owned(), policies.to_owned())]).unwrap()));
    let shut = Role { deny: vec![EntryPattern::new("files/read")], ..role(&["tools.execute"], &["files"]) };
    let all = [
        ("writer", role(&["tools.execute"], &["files"])),
        ("shut", shut),
        ("other", role(&["tools.execute"], &["db"])),
    ];
    let roles = RoleBook::new(all.map(|(name, role)| (name.to_owned(), role)), None);
    let set = permissions(PermissionSet { roles, policies, ..PermissionSet::default() });
    let at = |who: &Caller, name: &str, unix_ms| {
        let around = Circumstances { unix_ms, address: None };
        match set.access(who, &entry("files", name), None, &around) {
            Access::Usable(by) => by.as_deref() == Some("grant:1"),
            _ => false,
        }
    };
    let (ada, bob, eve) = (caller("ada", &["writer"]), caller("bob", &["other"]), caller("eve", &["shut"]));
    let before = set.audience(&bob);
    assert!(!set.lists(&bob, &entry("files", "read")) && !set.shows_backend(&bob, "files"));
    assert!(matches!(
        set.access(&ada, &entry("files", "write"), None, &Circumstances::default()),
        Access::AfterAsking(_)
    ));
    let all = ["ada", "bob", "eve"].map(|who| grant(who, &["files"], 100, false));
    assert!(
        set.grant(TimedGrants(all.to_vec())) && !set.grant(TimedGrants(all.to_vec())),
        "the same again changes nothing"
    );
    assert_ne!(set.audience(&bob), before);
    for (who, name, usable) in [
        (&ada, "write", true),
        (&bob, "read", true),
        (&bob, "write", true),
        (&bob, "drop", false),
        (&eve, "read", false),
        (&eve, "write", true),
    ] {
        assert_eq!(at(who, name, 99), usable, "{who:?} {name}");
        assert!(!at(who, name, 100), "it has ended");
        assert_eq!(set.lists(who, &entry("files", name)), usable, "lists and calls agree: {name}");
    }
    assert!(set.shows_backend(&bob, "files") && !is_usable(&set, &caller("carl", &[]), &entry("files", "read")));
    set.grant(set.grants().after(100));
    assert!(!set.lists(&bob, &entry("files", "read")));
}

/// Whoever breaks the glass may use everything, even what is closed, but nothing that is switched off.
#[test]
fn broken_glass_allows_everything_but_what_is_off() {
    let policies = "forbid(principal, action, resource);";
    let policies = Some(Arc::new(Policies::load(&[("a.cedar".to_owned(), policies.to_owned())]).unwrap()));
    let callers = vec![("files".into(), vec!["nobody".to_owned()])];
    let set = permissions(PermissionSet { roles: roles(), policies, callers, ..PermissionSet::default() });
    let (ada, read) = (caller("ada", &[]), entry("files", "read"));
    assert!(
        !set.lists(&ada, &read)
            && !set.shows_backend(&ada, "files")
            && !PermissionSource::has(&set, &ada, "write:disk")
    );
    set.grant(TimedGrants(vec![grant("ada", &[], 100, true)]));
    assert!(set.lists(&ada, &read) && set.shows_backend(&ada, "files") && is_usable(&set, &ada, &read));
    assert!(PermissionSource::has(&set, &ada, "write:disk") && !is_usable(&set, &caller("bob", &[]), &read));
    assert!(set.breaks_glass("ada", 99) && !set.breaks_glass("ada", 100) && !set.breaks_glass("bob", 0));
    let target = SwitchTarget::Entries(EntryPattern::new("files"));
    set.switch(Switches(vec![Switch { target, off: SwitchOffReason::Killed, reason: "".into() }]));
    assert!(!set.lists(&ada, &read) && set.stops(&ada, &read).is_some());
}
