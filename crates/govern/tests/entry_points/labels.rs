//! A tool that is labelled with a permission runs for callers that have it alone, by every way in.

use super::policies::{BACKENDS, Entry};
use super::ways::Way;
use super::world::{End, World, ada};
use serde_json::json;
use signalbox_engine::Caller;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::standing::Standing;
use signalbox_govern::permissions::{PermissionSet, Role, RoleBook};
use signalbox_govern::tool_labels::LabelRule;
use signalbox_wire::{Era, Revision};

const NEEDED: &str = "read:filesystem";

fn caller(scopes: Option<&[&str]>, roles: &[&str]) -> Caller {
    let texts = |texts: &[&str]| texts.iter().map(|&text| Box::from(text)).collect::<Vec<Box<str>>>();
    let standing = Standing { scopes: scopes.map(texts), roles: texts(roles), ..Standing::default() };
    ada(standing)
}

fn world(set: PermissionSet) -> World {
    let tool = Entry { kind: ListKind::Tools, backend: BACKENDS[0], name: "read".to_owned(), read_only: true };
    let world = World::new(&[tool], set, Revision::LATEST_LEGACY, Vec::new());
    let rule = LabelRule {
        pattern: EntryPattern::new("files/read"),
        categories: Vec::new(),
        trust: None,
        permissions: vec![NEEDED.into()],
        version: None,
    };
    world.labels.replace(Vec::new(), vec![rule]);
    world
}

fn asked(world: &World, caller: &Caller, way: Way, era: Era) -> End {
    let (method, params) = way.request("read");
    world.ask(caller, era, method, &params)
}

fn ways() -> impl Iterator<Item = (Way, Era)> {
    let ways = [Way::Call, Way::CallAsTask, Way::Invoke];
    let pairs = [Era::Legacy, Era::Modern].into_iter().flat_map(move |era| ways.map(|way| (way, era)));
    pairs.filter(|(way, era)| way.exists_in(*era))
}

fn role(permissions: &[&str]) -> Role {
    let permissions = permissions.iter().map(|&one| one.into()).collect();
    Role { permissions, allow: vec![EntryPattern::new("*")], deny: Vec::new(), ask: Vec::new() }
}

/// The permission that an answer names as lacking, and the word for that.
fn lacking(end: &End) -> (String, String) {
    let End::Answered(answer) = end else { panic!("{end:?}") };
    let data = &answer["error"]["data"];
    let details = if data["details"].is_object() { &data["details"] } else { data };
    let word = if data["error_code"].is_string() { &data["error_code"] } else { &data["reason"] };
    (details["permission"].as_str().unwrap_or_default().to_owned(), word.as_str().unwrap_or_default().to_owned())
}

#[test]
fn without_roles_a_label_binds_callers_that_scopes_limit() {
    let world = world(PermissionSet::default());
    for (way, era) in ways() {
        // The one without scopes comes first: what is kept of it is not for others.
        for (scopes, runs) in [(None, true), (Some(&[][..]), false), (Some(&["other"]), false), (Some(&[NEEDED]), true)]
        {
            let ada = caller(scopes, &[]);
            let end = asked(&world, &ada, way, era);
            let place = format!("{way:?} {era:?} {scopes:?}: {end:?}");
            assert_eq!(end.leaves(), runs, "{place}");
            assert!(world.listed(&ada, era, ListKind::Tools).contains("read"), "it may be seen: {place}");
            if !runs {
                let word = if way == Way::Invoke { "permission_denied" } else { "denied" };
                assert_eq!(lacking(&end), (NEEDED.to_owned(), word.to_owned()), "{place}");
            }
        }
    }
}

#[test]
fn the_lacking_permission_is_named_to_those_who_see_the_tool() {
    let all = [
        ("blind", role(&["tools.execute"])),
        ("seeing", role(&["tools.execute", "tools.read"])),
        ("listing", role(&["tools.read", NEEDED])),
        ("able", role(&["tools.execute", NEEDED])),
    ];
    let roles = || RoleBook::new(all.clone().map(|(name, role)| (name.to_owned(), role)), None);
    for reveal in [false, true] {
        let world = world(PermissionSet { roles: roles(), reveal, ..PermissionSet::default() });
        for (way, era) in ways() {
            let ask = |role: &str| asked(&world, &caller(None, &[role]), way, era);
            assert!(ask("able").leaves() && lacking(&ask("seeing")).0 == NEEDED, "{way:?} {era:?}");
            assert_eq!(lacking(&ask("listing")).0, "tools.execute", "{way:?} {era:?}");
            let hidden = lacking(&ask("blind"));
            assert_eq!(hidden.0, if reveal { NEEDED } else { "" }, "{way:?} {era:?} {hidden:?}");
        }
    }
}

/// The answer of the dialect claims only what the caller had.
#[test]
fn permissions_used_are_those_of_the_caller() {
    let world = world(PermissionSet { shadow: true, ..PermissionSet::default() });
    for (scopes, used) in [(None, json!([NEEDED])), (Some(&[][..]), json!([]))] {
        let mut client = world.dialect_client(&caller(scopes, &[]));
        let (method, params) = Way::Invoke.request("read");
        let commands = world.request(&mut client, method, &params);
        let answer = world.answered(&mut client, &commands, &json!({"content": [{"type": "text", "text": "1"}]}));
        assert_eq!(answer["result"]["security_context"]["permissions_used"], used, "{answer}");
    }
}
