//! Methods that MCP does not have go to a sole backend only, under the rules for a tool of that name.

use super::world::{End, World, ada};
use serde_json::json;
use signalbox_engine::chain::{EntryPattern, Interceptor};
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, Command};
use signalbox_govern::ScopeCheck;
use signalbox_govern::call_budgets::{Budgets, CallBudgets, ToolBounds};
use signalbox_govern::call_limits::{CallLimits, LimitRules, ScopeRates, ToolRate};
use signalbox_govern::permissions::{PermissionSet, Role, RoleBook};
use signalbox_govern::policy::Policies;
use signalbox_wire::{Era, Revision};
use std::sync::Arc;

const METHOD: &str = "admin/wipe";

fn caller(scopes: Option<&[&str]>) -> Caller {
    let texts = |texts: &[&str]| texts.iter().map(|&text| Box::from(text)).collect::<Vec<Box<str>>>();
    let standing = Standing { scopes: scopes.map(texts), roles: texts(&["worker"]), ..Standing::default() };
    ada(standing)
}

fn by_role(permissions: &[&str], allow: &[&str], deny: &[&str]) -> PermissionSet {
    let patterns = |texts: &[&str]| texts.iter().map(|text| EntryPattern::new(text)).collect();
    let permissions = permissions.iter().map(|&one| one.into()).collect();
    let role = Role { permissions, allow: patterns(allow), deny: patterns(deny), ask: Vec::new() };
    PermissionSet { roles: RoleBook::new([("worker".to_owned(), role)], None), ..PermissionSet::default() }
}

fn by_policy(text: &str) -> PermissionSet {
    let policies = Policies::load(&[("p.cedar".to_owned(), text.to_owned())]).unwrap();
    PermissionSet { policies: Some(Arc::new(policies)), ..PermissionSet::default() }
}

fn world(set: PermissionSet, behind: Vec<Arc<dyn Interceptor>>) -> World {
    World::of_backends(&["files"], &[], set, Revision::LATEST_LEGACY, behind)
}

/// Returns true if requests of the method reach the backend, in both eras alike.
fn passes(set: impl Fn() -> PermissionSet) -> bool {
    let ada = caller(None);
    let all = [Era::Legacy, Era::Modern].map(|era| {
        let end = world(set(), Vec::new()).ask(&ada, era, METHOD, &json!({}));
        if let End::Answered(answer) = &end {
            let code = answer["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32601 | -32003 | 4030)), "{era:?} {answer}");
        }
        end.leaves()
    });
    assert_eq!(all[0], all[1], "the eras differ");
    all[0]
}

#[test]
fn a_method_that_mcp_does_not_have_needs_what_a_tool_of_its_name_needs() {
    let use_all = &["tools.execute"][..];
    assert!(passes(PermissionSet::default));
    assert!(passes(|| by_role(use_all, &["*"], &[])));
    assert!(passes(|| by_role(use_all, &["files"], &[])));
    assert!(passes(|| by_role(use_all, &["files/admin/*"], &[])));
    assert!(!passes(|| by_role(use_all, &["files/get_*"], &[])));
    assert!(!passes(|| by_role(use_all, &["*"], &["files/admin/*"])));
    assert!(!passes(|| by_role(&["tools.read"], &["*"], &[])));
    assert!(passes(|| by_policy("permit (principal, action, resource);")));
    assert!(!passes(|| by_policy(r#"permit (principal, action == Action::"read", resource);"#)));
    assert!(!passes(|| by_policy(
        r#"permit (principal, action, resource);
           forbid (principal, action, resource == Tool::"files/admin/wipe");"#
    )));
}

#[test]
fn what_a_role_does_not_show_is_answered_like_a_method_that_nothing_has() {
    let ada = caller(None);
    for era in [Era::Legacy, Era::Modern] {
        let hidden = world(by_role(&["tools.execute"], &["files/get_*"], &[]), Vec::new());
        let none = World::of_backends(&["files", "mail"], &[], PermissionSet::default(), Revision::LATEST, Vec::new());
        assert_eq!(hidden.ask(&ada, era, METHOD, &json!({})), none.ask(&ada, era, METHOD, &json!({})), "{era:?}");
    }
}

#[test]
fn scopes_bind_methods_that_mcp_does_not_have() {
    let scopes = [("wipe".to_owned(), vec!["files/admin/*".to_owned()])];
    let check: Arc<dyn Interceptor> = Arc::new(ScopeCheck::new(&[], &scopes));
    let world = world(PermissionSet::default(), vec![check]);
    for (held, leaves) in [(&[][..], false), (&["other"], false), (&["wipe"], true)] {
        let end = world.ask(&caller(Some(held)), Era::Legacy, METHOD, &json!({}));
        assert_eq!(end.leaves(), leaves, "{held:?}: {end:?}");
    }
}

#[test]
fn methods_of_another_revision_go_to_no_backend() {
    let world = world(PermissionSet::default(), Vec::new());
    for method in ["server/discover", "subscriptions/listen", "sampling/createMessage", "roots/list"] {
        let end = world.ask(&caller(None), Era::Legacy, method, &json!({}));
        let End::Answered(answer) = &end else { panic!("{method}: {end:?}") };
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[test]
fn a_notification_that_mcp_does_not_have_is_told_where_a_tool_of_its_name_is_shown() {
    let told = |set: PermissionSet, backends: &[&'static str], method: &str| {
        let world = World::of_backends(backends, &[], set, Revision::LATEST_LEGACY, Vec::new());
        let mut client = world.client(&caller(None), Era::Legacy);
        let said = world.says(&mut client, &json!({"jsonrpc": "2.0", "method": method}));
        said.iter().any(|command| matches!(command, Command::Tell { .. }))
    };
    let role = |allow: &[&str]| by_role(&["tools.execute"], allow, &[]);
    let (sole, own) = (&["files"][..], "notifications/admin/wipe");
    assert!(told(PermissionSet::default(), sole, own) && told(role(&["*"]), sole, own));
    assert!(told(role(&["files/notifications/*"]), sole, own));
    assert!(!told(role(&["files/get_*"]), sole, own) && !told(role(&["files"]), &["files", "mail"], own));
    assert!(told(role(&["files/get_*"]), sole, "notifications/roots/list_changed"));
}

/// Limits that admit one call of the method, by the name that their refusals tell.
fn limits() -> Vec<(&'static str, Arc<dyn Interceptor>)> {
    let pattern = || EntryPattern::new("files/admin/wipe");
    let none = || ToolBounds {
        pattern: pattern(),
        max_concurrent: None,
        max_result: None,
        max_repeats: None,
        calls_per_day: None,
        price: 0,
        timeout: None,
    };
    let one = Some(1);
    let bounds = [
        ("concurrent", ToolBounds { max_concurrent: one, ..none() }),
        ("repeats", ToolBounds { max_repeats: one, ..none() }),
        ("day", ToolBounds { calls_per_day: one, ..none() }),
        ("budget", ToolBounds { price: 5, ..none() }),
    ];
    let mut all: Vec<(_, Arc<dyn Interceptor>)> = Vec::new();
    for (limit, bounds) in bounds {
        let budgets = Budgets { tools: vec![bounds], user_per_day: Some(5) };
        all.push((limit, Arc::new(CallBudgets::new(budgets))));
    }
    let per_second = ScopeRates { per_second: one, per_minute: None };
    let free = ScopeRates::default();
    all.push(("tool", Arc::new(CallLimits::new([free, free, per_second, free]))));
    let tools = vec![ToolRate { pattern: pattern(), per_minute: 1 }];
    all.push(("user_and_tool", Arc::new(CallLimits::new(LimitRules { scopes: [free; 4], tools }))));
    all
}

#[test]
fn limits_bind_methods_that_mcp_does_not_have() {
    for (limit, interceptor) in limits() {
        let world = world(PermissionSet::default(), vec![interceptor]);
        // Each request reports progress under another token.
        let ask =
            |era, method, token| world.ask(&caller(None), era, method, &json!({"_meta": {"progressToken": token}}));
        assert!(ask(Era::Legacy, METHOD, 1).leaves(), "{limit}");
        for era in [Era::Legacy, Era::Modern] {
            let End::Answered(answer) = ask(era, METHOD, 2) else { panic!("{limit} {era:?}") };
            assert_eq!(answer["error"]["data"]["limit"], limit, "{era:?} {answer}");
        }
        assert!(ask(Era::Legacy, "admin/other", 3).leaves(), "{limit}");
    }
}

#[test]
fn the_size_of_results_binds_methods_that_mcp_does_not_have() {
    let tools = vec![ToolBounds {
        pattern: EntryPattern::new("files/admin/*"),
        max_concurrent: None,
        max_result: Some(100),
        max_repeats: None,
        calls_per_day: None,
        price: 0,
        timeout: None,
    }];
    let budgets: Arc<dyn Interceptor> = Arc::new(CallBudgets::new(Budgets { tools, user_per_day: None }));
    let world = world(PermissionSet::default(), vec![budgets]);
    for (size, is_refused) in [(10, false), (200, true)] {
        let mut client = world.client(&caller(None), Era::Legacy);
        let commands = world.request(&mut client, METHOD, &json!({}));
        let answer = world.answered(&mut client, &commands, &json!({"wiped": "x".repeat(size)}));
        assert_eq!(answer["error"]["data"]["limit"] == "result", is_refused, "{size} {answer}");
    }
}
