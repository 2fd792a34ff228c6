//! A URI is judged in every way in which a server may read it, by every kind of policy and every
//! request that names one. What Node, Python and Rust really make of 500 spellings is held against the verdict.

use super::policies::{BACKENDS, Entry};
use super::spellings::{self, PRIVATE, PUBLIC};
use super::ways::Way;
use super::world::{End, World, ada, end_of};
use serde_json::{Value, json};
use signalbox_engine::Caller;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::chain::{EntryPattern, Interceptor};
use signalbox_engine::standing::Standing;
use signalbox_govern::ScopeCheck;
use signalbox_govern::permissions::{PermissionSet, Role, RoleBook, Switch, SwitchOffReason, SwitchTarget, Switches};
use signalbox_govern::policy::Policies;
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_wire::{Era, Revision};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A way to keep a caller from `file:///private/*`, or to let it use `file:///public/*` alone.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Guard {
    RoleDenies,
    RoleAllows,
    Resources,
    CedarForbids,
    CedarForbidsOne,
    CedarPermits,
    KillSwitch,
    Scope,
    Rule,
    RuleUnless,
}

impl Guard {
    const ALL: [Self; 10] = [
        Self::RoleDenies,
        Self::RoleAllows,
        Self::Resources,
        Self::CedarForbids,
        Self::CedarForbidsOne,
        Self::CedarPermits,
        Self::KillSwitch,
        Self::Scope,
        Self::Rule,
        Self::RuleUnless,
    ];

    /// True if all that is not public is denied, whatever it is.
    fn is_allow_list(self) -> bool {
        matches!(self, Self::RoleAllows | Self::Resources | Self::CedarPermits | Self::RuleUnless)
    }

    /// True for policies in Cedar, which are slow to judge in a build for tests.
    fn is_cedar(self) -> bool {
        matches!(self, Self::CedarForbids | Self::CedarForbidsOne | Self::CedarPermits)
    }

    fn set(self) -> PermissionSet {
        let pattern = |text: &str| vec![EntryPattern::new(text)];
        let role = |allow: &str, deny: Option<&str>| {
            let role = Role {
                permissions: vec!["tools.execute".into()],
                allow: pattern(allow),
                deny: deny.map(pattern).unwrap_or_default(),
                ask: Vec::new(),
            };
            RoleBook::new([("r".to_owned(), role)], Some("r"))
        };
        let cedar = |text: &str| {
            let text = text.to_owned();
            Some(Arc::new(Policies::load(&[("a.cedar".to_owned(), text)]).unwrap()))
        };
        let base = PermissionSet::default();
        match self {
            Self::RoleDenies => PermissionSet { roles: role("files", Some("files/file:///private/*")), ..base },
            Self::RoleAllows => PermissionSet { roles: role("files/file:///public/*", None), ..base },
            Self::Resources => PermissionSet { keeps_resources: true, ..base },
            Self::CedarForbids => {
                let forbid = r#"forbid(principal, action, resource is Resource) when { resource.uri like "file:///private/*" };"#;
                PermissionSet { policies: cedar(&format!("permit(principal, action, resource);\n{forbid}")), ..base }
            }
            Self::CedarForbidsOne => {
                let forbid = format!(r#"forbid(principal, action, resource == Resource::"files/{PRIVATE}");"#);
                PermissionSet { policies: cedar(&format!("permit(principal, action, resource);\n{forbid}")), ..base }
            }
            Self::CedarPermits => {
                let permit =
                    r#"permit(principal, action, resource is Resource) when { resource.uri like "file:///public/*" };"#;
                PermissionSet { policies: cedar(permit), ..base }
            }
            Self::KillSwitch => {
                let target = SwitchTarget::Entries(EntryPattern::new("files/file:///private/*"));
                let switch = Switch { target, off: SwitchOffReason::Killed, reason: "".into() };
                PermissionSet { switches: Switches(vec![switch]), ..base }
            }
            Self::Scope | Self::Rule | Self::RuleUnless => base,
        }
    }

    fn behind(self) -> Vec<Arc<dyn Interceptor>> {
        let rule = |when: &str| {
            let text = format!("[[rules]]\nid = \"r\"\nwhen = {when}\nthen = {{ block = \"no\" }}\n");
            Arc::new(RuleInterceptor::new(RuleSet::parse("rules.toml", &text).unwrap(), 1))
        };
        match self {
            Self::Scope => {
                let patterns = vec!["files/file:///private/*".to_owned()];
                vec![Arc::new(ScopeCheck::new(&[], &[("private".to_owned(), patterns)]))]
            }
            Self::Rule => vec![rule(r#"{ subject = "file:///private/*" }"#)],
            Self::RuleUnless => vec![rule(r#"{ not = { subject = "file:///public/*" } }"#)],
            _ => Vec::new(),
        }
    }

    fn world(self) -> World {
        let uri = |name: &str, kind| Entry { kind, backend: BACKENDS[0], name: name.to_owned(), read_only: true };
        let entries = [
            uri(PUBLIC, ListKind::Resources),
            uri("file:///{+path}", ListKind::Templates),
            uri("file:/{+path}", ListKind::Templates),
        ];
        World::new(&entries, self.set(), Revision::LATEST_LEGACY, self.behind())
    }

    fn caller(self) -> Caller {
        let standing = Standing {
            resources: if self == Self::Resources { vec!["file:///public/*".into()] } else { Vec::new() },
            scopes: (self == Self::Scope).then(Vec::new),
            ..Standing::default()
        };
        ada(standing)
    }
}

/// The requests that name a resource.
const WAYS: [Way; 5] = [Way::Read, Way::Subscribe, Way::Listen, Way::CompleteResource, Way::CompleteTemplate];

fn asked(world: &World, guard: Guard, way: Way, era: Era, uri: &str) -> End {
    let (method, params) = way.request(uri);
    world.ask(&guard.caller(), era, method, &params)
}

/// What came of each way in, of both eras.
fn ends(world: &World, guard: Guard, uri: &str) -> Vec<(String, End)> {
    let mut all = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for way in WAYS.into_iter().filter(|way| way.exists_in(era)) {
            all.push((format!("{guard:?} {way:?} {era:?} {uri:?}"), asked(world, guard, way, era, uri)));
        }
    }
    all
}

#[test]
fn what_is_denied_is_denied_in_every_spelling_by_every_way_in() {
    for guard in Guard::ALL {
        let world = guard.world();
        for (place, end) in ends(&world, guard, PUBLIC) {
            assert!(end.leaves(), "{place}: {end:?}");
        }
        for uri in std::iter::once(PRIVATE).chain(spellings::OF_PRIVATE) {
            for (place, end) in ends(&world, guard, uri) {
                assert!(!end.leaves(), "{place}: {end:?}");
            }
        }
        for (place, end) in ends(&world, guard, "file:///public/a%20b") {
            assert!(end.leaves(), "an escape does no harm: {place}: {end:?}");
        }
    }
}

#[test]
fn a_uri_with_a_control_character_is_refused_by_every_way_in() {
    let world = World::new(&[], PermissionSet::default(), Revision::LATEST_LEGACY, Vec::new());
    for control in ['\t', '\n', '\r', '\0', '\u{7f}', '\u{85}'] {
        let uri = format!("file:///public/.{control}./private/x");
        for (place, end) in ends(&world, Guard::Rule, &uri) {
            let End::Answered(answer) = &end else { panic!("{place}: {end:?}") };
            assert_eq!(answer["error"]["code"], -32602, "{place}: {answer}");
        }
    }
    let entry = |kind, uri: &str| Entry { kind, backend: "files", name: uri.to_owned(), read_only: true };
    let item = |kind, uri| signalbox_engine::catalog::Item::read(kind, entry(kind, uri).raw());
    for kind in [ListKind::Resources, ListKind::Templates] {
        assert!(item(kind, "file:///a\tb").is_err() && item(kind, "file:///a%09b").is_ok());
    }
}

/// Asks a program which paths it would open, one list per URI. `None` where it is not installed.
fn read_by(program: &str, arguments: &[&str], uris: &[String]) -> Option<Vec<Vec<String>>> {
    let child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{program} is not installed");
        eprintln!("SKIP {program}: not installed");
        return None;
    };
    let text = json!(uris).to_string();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} failed");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(serde_json::from_value(all).unwrap())
}

#[test]
fn what_servers_really_open_is_what_is_judged() {
    let uris = spellings::generated(500);
    let node = read_by("node", &["-e", spellings::NODE], &uris);
    let python = read_by("python3", &["-c", spellings::PYTHON], &uris);
    let rust: Vec<Vec<String>> = uris.iter().map(|uri| spellings::rust(uri)).collect();
    let mut opened = 0;
    for guard in Guard::ALL {
        let world = guard.world();
        for (at, uri) in uris.iter().enumerate().step_by(if guard.is_cedar() { 4 } else { 1 }) {
            let readers = [node.as_ref(), python.as_ref(), Some(&rust)];
            let paths: Vec<&String> = readers.into_iter().flatten().flat_map(|all| &all[at]).collect();
            let is_denied = |path: &str| match guard {
                Guard::CedarForbidsOne => path == "/private/x",
                _ if guard.is_allow_list() => !path.starts_with("/public/"),
                _ => path.starts_with("/private/"),
            };
            let Some(path) = paths.into_iter().find(|path| is_denied(path)) else { continue };
            opened += 1;
            let end = asked(&world, guard, Way::Read, Era::Legacy, uri);
            assert!(!end.leaves(), "{guard:?} {uri:?} opens {path}: {end:?}");
        }
    }
    assert!(opened > 1000, "the spellings reach what is private: {opened}");
}

/// Values that a server proposes for a template are names of resources.
#[test]
fn completions_of_a_template_name_no_resource_that_the_caller_may_not_read() {
    let params = json!({"ref": {"type": "ref/resource", "uri": "file:///{+path}"},
        "argument": {"name": "path", "value": "p"}});
    for (guard, era) in Guard::ALL.into_iter().flat_map(|guard| [Era::Legacy, Era::Modern].map(|era| (guard, era))) {
        let (world, caller) = (guard.world(), guard.caller());
        let mut client = world.client(&caller, era);
        let sent = world.request(&mut client, "completion/complete", &params);
        let proposed = |values: Value| json!({"completion": {"values": values, "total": 3, "hasMore": true}});
        let all = proposed(json!(["public/a", "private/x", "public/../private/x"]));
        if !end_of(&sent).is_some_and(|end| end.leaves()) {
            assert!(guard.is_allow_list(), "{guard:?} {era:?}");
            continue;
        }
        let answer = world.answered(&mut client, &sent, &all);
        assert_eq!(answer["result"]["completion"], json!({"values": ["public/a"]}), "{guard:?} {era:?}");
        let mut client = world.client(&caller, era);
        let sent = world.request(&mut client, "completion/complete", &params);
        let fine = proposed(json!(["public/a"]));
        let answer = world.answered(&mut client, &sent, &fine);
        assert_eq!(answer["result"]["completion"], fine["completion"], "{guard:?} {era:?}");
    }
}

/// What a client fills into a template makes a URI, too, and a rule for reads holds for what is completed.
#[test]
fn completions_are_judged_as_reads_of_the_uris_that_they_name() {
    let complete = |uri: &str, name: &str, value: &str, chosen: Value| {
        json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": value},
            "context": {"arguments": chosen}})
    };
    let reads = r#"[[rules]]
id = "r"
when = { method = "resources/read", subject = "file:///private/*" }
then = { block = "no" }
"#;
    let rules = || Arc::new(RuleInterceptor::new(RuleSet::parse("rules.toml", reads).unwrap(), 1));
    let entry = |name: &str, kind| Entry { kind, backend: BACKENDS[0], name: name.to_owned(), read_only: true };
    let entries = [
        entry(PUBLIC, ListKind::Resources),
        entry(PRIVATE, ListKind::Resources),
        entry("file:///{dir}/{+path}", ListKind::Templates),
    ];
    let of = |behind| World::new(&entries, PermissionSet::default(), Revision::LATEST_LEGACY, behind);
    let worlds = [
        (Guard::Scope, of(Guard::Scope.behind())),
        (Guard::Rule, of(Guard::Rule.behind())),
        (Guard::Rule, of(vec![rules()])),
    ];
    let template = "file:///{dir}/{+path}";
    for ((guard, world), era) in worlds.iter().flat_map(|one| [Era::Legacy, Era::Modern].map(|era| (one, era))) {
        let ask = |params: Value| world.ask(&guard.caller(), era, "completion/complete", &params);
        for good in [
            complete(PUBLIC, "path", "", json!({})),
            complete(template, "dir", "p", json!({})),
            complete(template, "path", "x", json!({"dir": "public"})),
        ] {
            assert!(ask(good.clone()).leaves(), "{guard:?} {era:?} {good}");
        }
        for bad in [
            complete(PRIVATE, "path", "", json!({})),
            complete(template, "path", "x", json!({"dir": "private"})),
            complete(template, "path", "../private/x", json!({"dir": "public"})),
            complete(template, "dir", "private", json!({"path": "x"})),
            complete(template, "other", "private/x", json!({"dir": "."})),
        ] {
            assert!(!ask(bad.clone()).goes_on(), "{guard:?} {era:?} {bad}");
        }
        let mut client = world.client(&guard.caller(), era);
        let asked = complete(template, "path", "", json!({"dir": "."}));
        let sent = world.request(&mut client, "completion/complete", &asked);
        let proposed = json!({"completion": {"values": ["public/a", "private/x"], "total": 2}});
        let answer = world.answered(&mut client, &sent, &proposed);
        assert_eq!(answer["result"]["completion"], json!({"values": ["public/a"]}), "{guard:?} {era:?}");
    }
}
