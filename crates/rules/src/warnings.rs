//! Warnings about rules that are valid, but probably not intended.

use crate::action::Action;
use crate::condition::{Leaf, MethodTest};
use crate::error::RuleWarning;
use crate::facts::Root;
use crate::phases::Phases;
use crate::pointer::Pointer;
use crate::reach::Methods;
use crate::rule::Rule;
use signalbox_wire::method;

pub(crate) fn warnings(rules: &[Rule]) -> Vec<RuleWarning> {
    let mut out = Vec::new();
    // Rules that match every message of some phases, with the action that ends them.
    let mut enders: Vec<(&Rule, Phases, &Action)> = Vec::new();
    for rule in rules.iter().filter(|rule| rule.enabled) {
        let warn = |text: String| RuleWarning { place: rule.place.clone(), rule: rule.id.to_string(), text };
        if rule.phases == Phases::NONE || rule.methods.is_empty() {
            out.push(warn("can never match: its conditions exclude each other".to_owned()));
            continue;
        }
        if let Some((ender, _, action)) = enders.iter().find(|(_, phases, _)| phases.covers(rule.phases)) {
            let (ender, word) = (&ender.id, action.word());
            out.push(warn(format!(
                "is never reached: rule `{ender}` comes first, has no conditions and ends with `{word}`"
            )));
            continue;
        }
        if let Some(place) = rule.then.iter().position(Action::always_ends)
            && place + 1 < rule.then.len()
            && rule.then[place].fits().covers(rule.phases)
        {
            let (word, rest) = (rule.then[place].word(), rule.then.len() - place - 1);
            out.push(warn(format!("ends with `{word}`; the {rest} after it never run")));
        }
        out.extend(odd_conditions(rule).into_iter().map(warn));
        let ender = rule.then.iter().find(|action| action.always_ends());
        if let (true, Methods::Any, Some(action)) = (takes_all(rule), &rule.methods, ender) {
            enders.push((rule, rule.phases.and(action.fits()), action));
        }
    }
    out
}

/// Reports tests of methods and places that do not exist.
fn odd_conditions(rule: &Rule) -> Vec<String> {
    let mut leaves = Vec::new();
    rule.when.leaves(&mut leaves);
    let mut odd = Vec::new();
    for leaf in leaves {
        match leaf {
            Leaf::Method(test) => odd.extend(unknown_method(test)),
            Leaf::Value { root, pointer, inside, .. } => {
                odd.extend(begins_inside(*root, pointer).filter(|_| *inside));
                odd.extend(no_such_place(rule, *root, pointer));
            }
            _ => {}
        }
    }
    odd
}

fn unknown_method(test: &MethodTest) -> Vec<String> {
    let none = |what: String| vec![format!("no MCP method {what}")];
    match test {
        MethodTest::In(list) => {
            let unknown = list.iter().filter(|name| method::intern(name).is_none());
            unknown.map(|name| format!("`{name}` is not an MCP method")).collect()
        }
        MethodTest::StartsWith(start) if !method::all().any(|name| name.starts_with(&**start)) => {
            none(format!("starts with `{start}`"))
        }
        MethodTest::EndsWith(end) if !method::all().any(|name| name.ends_with(&**end)) => {
            none(format!("ends with `{end}`"))
        }
        _ => vec![],
    }
}

/// Members of the params and the result of a tool call, across all revisions.
const CALL_PARAMS: [&str; 6] = ["name", "arguments", "_meta", "task", "inputResponses", "requestState"];
const CALL_RESULT: [&str; 9] = [
    "content",
    "structuredContent",
    "isError",
    "_meta",
    "task",
    "resultType",
    "inputRequests",
    "requestState",
    "ttlMs",
];

/// Reports a pointer in the older form, which is relative to the params or the result.
fn begins_inside(root: Root, pointer: &Pointer) -> Option<String> {
    let (root, pointer) = (root.word(), pointer.as_str());
    Some(format!("`{pointer}` begins inside `{root}`; pointers begin at the message: write `/{root}{pointer}`"))
}

/// Reports a place that the params or the result of a tool call cannot have.
fn no_such_place(rule: &Rule, root: Root, pointer: &Pointer) -> Option<String> {
    let first = pointer.segments().first()?;
    let (inside, known): (&str, &[&str]) = match root {
        Root::Params => ("params", &CALL_PARAMS),
        Root::Result => ("result", &CALL_RESULT),
        Root::Error => ("error", &["code", "message", "data"]),
    };
    let calls = matches!(&rule.methods, Methods::Only(some) if some.iter().all(|name| **name == *method::TOOLS_CALL));
    (calls && !known.contains(&&**first))
        .then(|| format!("the {inside} of a tool call has no `{first}`; it may have {}", known.join(", ")))
}

/// Returns `true` if a rule matches every message of its phases.
fn takes_all(rule: &Rule) -> bool {
    use crate::condition::Condition;
    match &rule.when {
        Condition::Leaf(Leaf::Phase(_) | Leaf::Direction(_), _) => true,
        other => other.is_empty(),
    }
}
