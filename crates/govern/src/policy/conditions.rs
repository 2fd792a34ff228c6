//! Inputs of a policy, read from its JSON form, and the weaker form that decides lists.
//!
//! A list must not depend on arguments that have not been given yet, or on the time of day. Each policy therefore has a
//! second, weaker form. A `permit` loses all parts that look at `context`, so that it permits whatever the full form
//! may permit with some arguments. A `forbid` that looks at `context` is dropped as a whole.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Inputs of a policy besides principal, action and resource.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mentions {
    /// True if it looks at `context` at all.
    pub context: bool,
    /// True if it looks at the time or the address of the call.
    pub circumstances: bool,
    /// Names of the arguments it looks at.
    pub arguments: BTreeSet<String>,
    /// True if it looks at the arguments as a whole.
    pub all_arguments: bool,
}

impl Mentions {
    /// Collects the inputs of a policy in JSON form.
    #[must_use]
    pub fn of(policy: &Value) -> Self {
        let mut found = Self::default();
        if let Some(conditions) = policy.get("conditions") {
            found.walk(conditions);
        }
        found
    }

    /// Adds the inputs of another policy.
    pub fn add(&mut self, other: &Self) {
        self.context |= other.context;
        self.circumstances |= other.circumstances;
        self.all_arguments |= other.all_arguments;
        self.arguments.extend(other.arguments.iter().cloned());
    }

    fn walk(&mut self, node: &Value) {
        if let Some((left, attr)) = access(node) {
            if is_context(left) && attr != "arguments" {
                (self.context, self.circumstances) = (true, true);
                return;
            }
            if is_arguments(left) {
                self.context = true;
                self.arguments.insert(attr.to_owned());
                return;
            }
        }
        if is_arguments(node) || is_context(node) {
            (self.context, self.all_arguments) = (true, true);
            self.circumstances |= is_context(node);
            return;
        }
        match node {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(members) => members.values().for_each(|member| self.walk(member)),
            _ => {}
        }
    }
}

/// Returns the form of a policy that decides lists; `None` if it does not affect them.
#[must_use]
pub fn for_listing(policy: &Value, is_permit: bool) -> Option<Value> {
    if !is_permit {
        return (!Mentions::of(policy).context).then(|| policy.clone());
    }
    let mut weaker = policy.clone();
    if let Some(conditions) = weaker.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain_mut(|condition| {
            let joined_by = if condition.get("kind").and_then(Value::as_str) == Some("unless") { "||" } else { "&&" };
            let kept = condition.get("body").and_then(|body| without_context(body, joined_by));
            kept.is_some_and(|body| condition.as_object_mut().map(|one| one.insert("body".into(), body)).is_some())
        });
    }
    Some(weaker)
}

/// Returns the parts of a condition, joined by `&&` or `||`, that do not look at `context`.
fn without_context(body: &Value, joined_by: &str) -> Option<Value> {
    if let Some((left, right)) = sides(body, joined_by) {
        return match (without_context(left, joined_by), without_context(right, joined_by)) {
            (Some(left), Some(right)) => {
                let sides = Map::from_iter([("left".to_owned(), left), ("right".to_owned(), right)]);
                Some(Value::Object(Map::from_iter([(joined_by.to_owned(), Value::Object(sides))])))
            }
            (one, other) => one.or(other),
        };
    }
    let mut found = Mentions::default();
    found.walk(body);
    (!found.context).then(|| body.clone())
}

fn sides<'a>(node: &'a Value, operator: &str) -> Option<(&'a Value, &'a Value)> {
    let inside = node.get(operator)?;
    Some((inside.get("left")?, inside.get("right")?))
}

/// Returns the two sides of `left.attr` or `left has attr`.
fn access(node: &Value) -> Option<(&Value, &str)> {
    let inside = node.get(".").or_else(|| node.get("has"))?;
    Some((inside.get("left")?, inside.get("attr")?.as_str()?))
}

fn is_context(node: &Value) -> bool {
    node.get("Var").and_then(Value::as_str) == Some("context")
}

fn is_arguments(node: &Value) -> bool {
    let inside = node.get(".");
    inside.is_some_and(|inside| {
        inside.get("left").is_some_and(is_context) && inside.get("attr").and_then(Value::as_str) == Some("arguments")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::Policy;

    fn parsed(text: &str) -> Value {
        text.parse::<Policy>().unwrap().to_json().unwrap()
    }

    #[test]
    fn arguments_are_found_by_name_or_as_a_whole() {
        let named = Mentions::of(&parsed(
            r#"permit(principal, action, resource) when { context.arguments has path && context.arguments["size"] > 3 };"#,
        ));
        let names: Vec<&str> = named.arguments.iter().map(String::as_str).collect();
        assert_eq!((names, named.all_arguments, named.context), (vec!["path", "size"], false, true));
        assert!(!named.circumstances);
        let whole = Mentions::of(&parsed("permit(principal, action, resource) when { context.arguments == {} };"));
        assert!(whole.all_arguments && whole.context);
        let other = Mentions::of(&parsed("permit(principal, action, resource) when { context has address };"));
        assert!(!other.all_arguments && other.context && other.circumstances && other.arguments.is_empty());
        let none = Mentions::of(&parsed(r#"permit(principal, action, resource) when { resource.name == "context" };"#));
        assert_eq!(none, Mentions::default());
    }

    fn listed(text: &str, is_permit: bool) -> Option<String> {
        let form = for_listing(&parsed(text), is_permit)?;
        Some(Policy::from_json(None, form).unwrap().to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_permit_is_listed_by_what_does_not_look_at_the_context() {
        let text = r#"permit(principal, action, resource)
            when { resource.readOnly && (context.arguments.a == 1 && principal.trust == "system") }
            unless { context.arguments has b || resource.destructive }
            when { context.arguments.c };"#;
        let form = listed(text, true).unwrap();
        assert!(form.contains("resource.readOnly") || form.contains(r#"resource["readOnly"]"#), "{form}");
        assert!(form.contains("system") && form.contains("destructive") && !form.contains("context"), "{form}");
    }

    #[test]
    fn a_forbid_that_looks_at_the_context_hides_nothing() {
        assert_eq!(listed("forbid(principal, action, resource) when { context.arguments.a == 1 };", false), None);
        assert!(listed("forbid(principal, action, resource) when { resource.destructive };", false).is_some());
    }
}
