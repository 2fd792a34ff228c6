//! Policies over callers, entries and arguments.

use super::*;
use proptest::prelude::*;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::{Principal, Proof};

fn load(text: &str) -> Policies {
    Policies::load(&[("a.cedar".to_owned(), text.to_owned())]).unwrap()
}

fn tool<'a>(name: &'a str) -> EntryRef<'a> {
    EntryRef { kind: ListKind::Tools, backend: "files", name, definition: None }
}

fn ada() -> Caller {
    Caller::of(Principal::named("user:ada"), Proof::ApiKey, "http")
}

fn known() -> EntityAttributes<'static> {
    EntityAttributes { trust: "community", ..EntityAttributes::default() }
}

fn prepare(policies: &Policies, entry: &EntryRef<'_>) -> PreparedPolicies {
    policies.prepare(&ada(), entry, entry.name, &known()).unwrap()
}

fn decide(policies: &Policies, name: &str, arguments: &str) -> PolicyVerdict {
    let around = Circumstances { unix_ms: 1_700_000_000_000, address: None };
    policies.decide(&prepare(policies, &tool(name)), Some(arguments.as_bytes()), &around)
}

fn lists(policies: &Policies, name: &str) -> bool {
    prepare(policies, &tool(name)).is_listed()
}

#[test]
fn nothing_is_permitted_that_no_policy_permits_and_a_forbid_outweighs() {
    let policies = load(
        r#"@id("all") permit(principal, action == Action::"call", resource in Backend::"files");
           @id("no drops") @reason("drops are for nobody") forbid(principal, action, resource == Tool::"files/drop");"#,
    );
    assert_eq!(decide(&policies, "read", "{}"), PolicyVerdict::Permit("all".into()));
    let PolicyVerdict::Forbid(grounds) = decide(&policies, "drop", "{}") else { panic!("dropped") };
    assert_eq!((grounds.policy.as_deref(), grounds.reason.as_str()), (Some("no drops"), "drops are for nobody"));
    assert!(lists(&policies, "read") && !lists(&policies, "drop"));
    let elsewhere = EntryRef { backend: "db", ..tool("read") };
    let verdict = policies.decide(&prepare(&policies, &elsewhere), None, &Circumstances::default());
    assert_eq!(verdict, forbid(None, "no policy permits it".into()));
}

/// Cedar skips a policy that errs; here that denies, and the policy is named.
#[test]
fn an_error_denies_and_is_named() {
    let policies = load(
        r#"@id("all") permit(principal, action, resource);
           @id("paths") forbid(principal, action, resource) when { context.arguments.path like "/etc/*" };"#,
    );
    assert!(matches!(decide(&policies, "read", r#"{"path":"/home"}"#), PolicyVerdict::Permit(_)));
    for arguments in [r#"{"path":"/etc/passwd"}"#, "{}", r#"{"path":null}"#, r#"{"path":7}"#, r#"{"path":1e400}"#] {
        let PolicyVerdict::Forbid(grounds) = decide(&policies, "read", arguments) else { panic!("{arguments} passed") };
        assert!(grounds.policy.as_deref() == Some("paths") || arguments.contains("1e400"), "{grounds:?}");
    }
    assert!(lists(&policies, "read"), "some path may be read");
}

/// Reasons are recorded where arguments are not, so they quote no value and no name that only the caller gave.
#[test]
fn no_error_of_a_policy_quotes_the_call() {
    for (condition, arguments) in [
        ("context.arguments.n > 7", r#"{"n":4111111111111111000000}"#),
        ("context.arguments.n > 7", r#"{"n":0.4111111111111111}"#),
        ("context.arguments.n > 7", r#"{"n":"4111111111111111"}"#),
        ("context.arguments.n > 7", r#"{"n":{"4111111111111111":1}}"#),
        ("context.arguments.n.m > 7", r#"{"n":{"4111111111111111":1}}"#),
        ("context.arguments.n * 100000 > 7", r#"{"n":4111111111111111}"#),
        ("-context.arguments.n - 2 > 7", r#"{"n":9223372036854775807,"x":"4111111111111111"}"#),
        ("decimal(context.arguments.n).lessThan(decimal(\"1.0\"))", r#"{"n":"4111111111111111x"}"#),
        ("ip(context.arguments.n).isLoopback()", r#"{"n":"4111111111111111"}"#),
        ("datetime(context.arguments.n) > datetime(\"2024-01-01\")", r#"{"n":"4111111111111111"}"#),
        (
            "resource.hasTag(context.arguments.n) || resource.getTag(context.arguments.n) == 1",
            r#"{"n":"4111111111111111"}"#,
        ),
        ("context.arguments == {}", r#"{"4111111111111111":1e400}"#),
    ] {
        let text = format!("@id(\"p\") permit(principal, action, resource) when {{ {condition} }};");
        let Ok(policies) = Policies::load(&[("a.cedar".to_owned(), text)]) else { continue };
        let PolicyVerdict::Forbid(grounds) = decide(&policies, "read", arguments) else { panic!("{condition}") };
        assert!(grounds.reason.contains("cannot be"), "{condition}: {grounds:?}");
        assert!(!grounds.reason.contains("4111") && !grounds.reason.contains("9223"), "{condition}: {grounds:?}");
    }
}

/// A verdict is kept for the arguments that policies look at, and for nothing that is written differently.
#[test]
fn a_kept_verdict_is_for_the_same_arguments_alone() {
    let policies = load("permit(principal, action, resource) when { context.arguments.a == \"1\" };");
    let prepared = prepare(&policies, &tool("read"));
    let says = |arguments: &str| {
        let verdict = policies.decide(&prepared, Some(arguments.as_bytes()), &Circumstances::default());
        matches!(verdict, PolicyVerdict::Permit(_))
    };
    for _ in 0..2 {
        assert!(says(r#"{"a":"1"}"#) && says(r#"{"b":2,"a":"1"}"#));
        assert!(!says(r#"{"a":"2"}"#) && !says(r#"{"a":1}"#) && !says("{}") && !says(r#"{"b":"1"}"#));
    }
    assert_eq!(prepared.verdicts.lock().unwrap().len(), 4);
    let timed = load("permit(principal, action, resource) when { context.now.toTime() < duration(\"20h\") };");
    assert_eq!(prepare(&timed, &tool("read")).key(b"{}"), None, "the time of the day changes");
}

#[test]
fn an_argument_that_no_policy_looks_at_is_not_judged() {
    let policies = load("permit(principal, action, resource) when { context.arguments.size <= 10 };");
    assert!(matches!(decide(&policies, "read", r#"{"size":10,"other":0.00001}"#), PolicyVerdict::Permit(_)));
    assert!(matches!(decide(&policies, "read", r#"{"size":11}"#), PolicyVerdict::Forbid(_)));
}

#[test]
fn a_person_can_lift_what_asks_but_not_what_is_lacking() {
    let policies = load(
        r#"@id("reads") permit(principal, action, resource == Tool::"files/write");
           @id("ask") @ask("somebody must look at it") forbid(principal, action, resource);"#,
    );
    let PolicyVerdict::Ask(Asking { grounds, .. }) = decide(&policies, "write", "{}") else {
        panic!("nobody is asked")
    };
    assert_eq!((grounds.policy.as_deref(), grounds.reason.as_str()), (Some("ask"), "somebody must look at it"));
    assert!(matches!(decide(&policies, "other", "{}"), PolicyVerdict::Forbid(_)));
    assert!(lists(&policies, "write") && !lists(&policies, "other"));
}

#[test]
fn roles_annotations_time_and_address_can_be_asked_for() {
    let policies = load(
        r#"@id("ops") permit(principal in Role::"ops", action == Action::"call", resource) when { resource.readOnly };
           @id("day") permit(principal, action, resource == Tool::"files/day")
             when { context.now.toTime() < duration("20h") && context has address && context.address.isLoopback() };"#,
    );
    let ops: Vec<Box<str>> = vec!["ops".into()];
    let known = EntityAttributes { roles: &ops, ..known() };
    let definition = br#"{"name":"read","annotations":{"readOnlyHint":true}}"#;
    let safe = EntryRef { definition: Some(definition), ..tool("read") };
    let around = Circumstances { unix_ms: 1_700_000_000_000, address: "127.0.0.1".parse().ok() };
    let says = |entry: &EntryRef<'_>, around| {
        policies.decide(&policies.prepare(&ada(), entry, entry.name, &known).unwrap(), None, around)
    };
    assert_eq!(says(&safe, &around), PolicyVerdict::Permit("ops".into()));
    assert!(matches!(says(&tool("read"), &around), PolicyVerdict::Forbid(_)), "a changed definition is judged anew");
    let late = Circumstances { unix_ms: 1_700_000_000_000, ..around };
    assert!(matches!(says(&tool("day"), &late), PolicyVerdict::Forbid(_)), "22:13 is late");
    let early = Circumstances { unix_ms: 1_699_960_000_000, ..around };
    assert_eq!(says(&tool("day"), &early), PolicyVerdict::Permit("day".into()));
}

#[test]
fn what_the_schema_makes_impossible_is_an_error_and_what_nothing_has_a_warning() {
    for (text, told) in [
        (r#"permit(principal, action == Action::"call", resource is Prompt);"#, "a.cedar"),
        (r#"permit(principal, action, resource) when { principal.age > 3 };"#, "age"),
        (r#"permit(principal == Person::"x", action, resource);"#, "Person"),
        (r#"permit(principal, action == Action::"drop", resource);"#, "drop"),
    ] {
        let error = Policies::load(&[("a.cedar".to_owned(), text.to_owned())]).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
    let policies = load(
        r#"@id("a") permit(principal, action, resource == Tool::"files/gone");
           @id("b") permit(principal, action, resource == Tool::"files/read") when { context.arguments.pth == "x" };
           @id("c") permit(principal, action, resource in Backend::"files") when { context.arguments.path == "x" };"#,
    );
    let definition = br#"{"name":"read","inputSchema":{"properties":{"path":{"type":"string"}}}}"#.to_vec();
    let known = [KnownTool { backend: "files".into(), name: "read".into(), definition }];
    let told: Vec<String> = check::against_tools(policies.rules(), &known).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["a.cedar: `a`: no tool `files/gone` is known", "a.cedar: `b`: no tool that it is for has an argument `pth`"]
    );
}

/// Parts of random policies: scopes, and conditions with and without the context.
fn policy() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec!["permit", "forbid", "@ask(\"?\") forbid"]);
    let scope = prop::sample::select(vec![
        "resource",
        r#"resource == Tool::"files/a""#,
        r#"resource == Tool::"files/b""#,
        r#"resource in Backend::"files""#,
        r#"resource is Prompt"#,
    ]);
    let condition = prop::sample::select(vec![
        r#"principal.transport == "http""#,
        "resource.backend == \"files\"",
        r#"principal.trust == "verified""#,
        "context.arguments has x",
        "context.arguments.x == 1",
        "context.arguments.x > 1 && principal.trust == \"verified\"",
        "context.arguments.y like \"a*\" || resource.backend == \"files\"",
        "!(context.arguments has y)",
    ]);
    let clause = (prop::sample::select(vec!["when", "unless"]), condition)
        .prop_map(|(kind, body)| format!("{kind} {{ {body} }}"));
    (effect, scope, prop::collection::vec(clause, 0..3)).prop_map(|(effect, scope, clauses)| {
        let action = if scope.contains("Prompt") { "get" } else { "call" };
        format!("{effect}(principal, action == Action::\"{action}\", {scope}) {};", clauses.join(" "))
    })
}

proptest! {
    /// What can be called is listed; without conditions on the context, what is listed can be called.
    #[test]
    fn called_implies_listed(
        texts in prop::collection::vec(policy(), 1..6),
        arguments in prop::sample::select(vec!["{}", r#"{"x":1}"#, r#"{"x":2,"y":"ab"}"#, r#"{"y":"b"}"#, r#"{"x":"s"}"#]),
    ) {
        let policies = load(&texts.join("\n"));
        for name in ["a", "b", "c"] {
            let usable = !matches!(decide(&policies, name, arguments), PolicyVerdict::Forbid(_));
            let listed = lists(&policies, name);
            prop_assert!(!usable || listed, "{name} with {arguments} is usable, not listed: {texts:?}");
            if !texts.iter().any(|text| text.contains("context")) {
                prop_assert_eq!(usable, listed, "{}: {:?}", name, texts);
            }
        }
    }
}
