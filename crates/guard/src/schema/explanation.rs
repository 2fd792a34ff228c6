//! Explains why an instance is invalid: the nearest violations, and values that only need another spelling.
//!
//! An explanation is made only after the validator has refused an instance. It may be incomplete, never wrong about the
//! verdict.

use super::SchemaViolation;
use super::coercion::coerce;
use super::description::{describe, describe_assertions};
use super::graph::{Graph, ROOT};
use super::json_types::JsonTypes;
use super::limits::{MAX_COERCIONS, MAX_EXPLANATION};
use super::schema_node::{NodeId, Role, SchemaNode};
use super::schema_validity::{count, describe_value, quote};
use super::secret_name::is_secret_name;
use serde_json::{Map, Value};
use signalbox_wire::closest::closest;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A violation with what is needed to choose among branches and to coerce.
#[derive(Clone)]
pub(super) struct Problem {
    /// JSON pointer as it is.
    pub(super) pointer: String,
    pub(super) violation: SchemaViolation,
    /// The value as the schema wants it spelled.
    pub(super) coerced: Option<Value>,
    /// Types that would be right, if the type is all that is wrong.
    types: Option<JsonTypes>,
    /// True if a choice (`enum`, `const`) was not met, which mostly means that another branch was meant.
    is_choice: bool,
}

/// A value of the instance.
#[derive(Copy, Clone)]
struct Instance<'v> {
    value: &'v Value,
    is_secret: bool,
}

enum Segment<'v> {
    Name(&'v str),
    Index(usize),
}

struct Explainer<'a, 'v> {
    graph: &'a Graph,
    path: Vec<Segment<'v>>,
    steps: u64,
}

/// Returns what is wrong with an instance. Empty if that is beyond an explanation.
pub(super) fn explain(graph: &Graph, instance: &Value) -> Vec<Problem> {
    let mut explainer = Explainer { graph, path: Vec::new(), steps: 0 };
    let mut problems = explainer.explain(Instance { value: instance, is_secret: false }, ROOT);
    problems.truncate(MAX_COERCIONS);
    problems
}

impl<'a, 'v> Explainer<'a, 'v> {
    fn explain(&mut self, instance: Instance<'v>, id: NodeId) -> Vec<Problem> {
        let graph = self.graph;
        let Some(node) = graph.node(id) else { return Vec::new() };
        if !self.spend(node, instance.value) {
            return Vec::new();
        }
        let instance = Instance { is_secret: instance.is_secret || node.assertions.is_secret, ..instance };
        if node.is_false {
            return vec![self.problem("no value here", describe_value(instance.value, instance.is_secret))];
        }
        if let Some(problem) = self.explain_assertions(instance, node) {
            return vec![problem];
        }
        let mut problems = match instance.value {
            Value::Object(members) => self.explain_members(members, instance.is_secret, node),
            Value::Array(items) => self.explain_items(items, instance.is_secret, node),
            _ => Vec::new(),
        };
        if problems.len() < MAX_COERCIONS {
            problems.extend(self.explain_same_value(instance, node));
        }
        problems
    }

    /// Counts the work. Returns `false` once the budget is used up.
    fn spend(&mut self, node: &SchemaNode, value: &Value) -> bool {
        const BYTES_PER_STEP: u64 = 64;
        let text = value.as_str().map_or(0, |text| text.len() as u64 + 16);
        let members = value.as_object().map_or(0, Map::len) as u64;
        let units = node.weight.fixed.saturating_add(node.weight.per_text_kib.saturating_mul(text) / 1024);
        let by_name = members.saturating_mul(1 + node.properties.by_pattern.len() as u64);
        // The text may be parsed, to see whether it spells another type.
        let by_text = text / BYTES_PER_STEP;
        self.steps = self.steps.saturating_add(units).saturating_add(by_name).saturating_add(by_text);
        self.steps <= MAX_EXPLANATION
    }

    fn passes(&mut self, instance: Instance<'v>, id: NodeId) -> bool {
        self.explain(instance, id).is_empty()
    }

    fn problem(&self, expected: &str, found: String) -> Problem {
        let mut pointer = String::new();
        for segment in &self.path {
            let _ = match segment {
                Segment::Name(name) => write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1")),
                Segment::Index(index) => write!(pointer, "/{index}"),
            };
        }
        let violation = SchemaViolation::new(&pointer, expected, &found);
        Problem { pointer, violation, coerced: None, types: None, is_choice: false }
    }

    fn type_problem(&self, instance: Instance<'v>, types: JsonTypes, expected: &str) -> Problem {
        let mut problem = self.problem(expected, describe_value(instance.value, instance.is_secret));
        problem.coerced = coerce(instance.value, types);
        problem.types = Some(types);
        problem
    }

    /// Judges the value itself: its type, then choices, bounds, length and pattern.
    fn explain_assertions(&self, instance: Instance<'v>, node: &SchemaNode) -> Option<Problem> {
        let own = &node.assertions;
        if !own.types.intersects(JsonTypes::of(instance.value)) {
            return Some(self.type_problem(instance, own.types, &describe_assertions(own)));
        }
        if let Some(choices) = own.choices.as_ref().filter(|choices| !choices.contains(instance.value)) {
            return Some(self.choice_problem(instance, choices, &describe_assertions(own)));
        }
        let found = match instance.value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                let divides = own.multiple_of.is_none_or(|divisor| (number / divisor).fract() == 0.0);
                (!own.range.contains(number) || !divides).then(|| describe_value(instance.value, instance.is_secret))
            }
            Value::String(text) => {
                let length = text.chars().count();
                let matches = own.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text) != Some(false));
                if own.length.contains(length as f64) {
                    (!matches).then(|| describe_value(instance.value, instance.is_secret))
                } else {
                    Some(format!("a string of {}", count(length, "character")))
                }
            }
            Value::Array(items) => (!own.item_count.contains(items.len() as f64))
                .then(|| format!("an array of {}", count(items.len(), "item"))),
            Value::Object(members) => (!own.property_count.contains(members.len() as f64))
                .then(|| format!("an object with {}", count(members.len(), "member"))),
            _ => None,
        };
        found.map(|found| self.problem(&describe_assertions(own), found))
    }

    fn choice_problem(&self, instance: Instance<'v>, choices: &[Value], expected: &str) -> Problem {
        let mut found = describe_value(instance.value, instance.is_secret);
        if let (Some(text), false) = (instance.value.as_str(), instance.is_secret) {
            found = quote(text);
            let known: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            if let Some(near) = closest(text, &known) {
                found.push_str(&format!(" (did you mean {}?)", quote(near)));
            }
        }
        let mut problem = self.problem(expected, found);
        problem.is_choice = true;
        problem.coerced = coerce(instance.value, JsonTypes::ALL).filter(|value| choices.contains(value));
        problem
    }

    fn explain_members(&mut self, members: &'v Map<String, Value>, is_secret: bool, node: &SchemaNode) -> Vec<Problem> {
        let rules = &node.properties;
        let dependent = rules.dependent.iter().filter(|(name, _)| members.contains_key(name));
        let required = node.assertions.required.iter().chain(dependent.flat_map(|(_, required)| required));
        let mut problems: Vec<Problem> = required
            .filter(|name| !members.contains_key(*name))
            .take(MAX_COERCIONS)
            .map(|name| self.missing_problem(name, node))
            .collect();
        for (name, value) in members {
            if problems.len() >= MAX_COERCIONS {
                break;
            }
            let member = Instance { value, is_secret: is_secret || is_secret_name(name) };
            self.path.push(Segment::Name(name));
            problems.extend(self.explain_member(name, member, node));
            self.path.pop();
        }
        problems
    }

    fn explain_member(&mut self, name: &'v str, member: Instance<'v>, node: &SchemaNode) -> Vec<Problem> {
        let rules = &node.properties;
        let mut problems = Vec::new();
        let mut is_known = false;
        if let Some(target) = rules.named.get(name) {
            is_known = true;
            problems.extend(self.explain(member, *target));
        }
        for (pattern, target) in &rules.by_pattern {
            if pattern.is_match(name) == Some(true) {
                is_known = true;
                problems.extend(self.explain(member, *target));
            }
        }
        if is_known {
            return problems;
        }
        if let Some(target) = rules.additional {
            problems.extend(
                self.explain_unknown(name, member, target, || rules.named.keys().map(String::as_str).collect()),
            );
        } else if let Some(target) = rules.unevaluated {
            let known = self.named_beneath(node);
            if !known.contains(&name) {
                problems.extend(self.explain_unknown(name, member, target, || known));
            }
        }
        problems
    }

    /// Explains a property that has no rule of its own.
    fn explain_unknown<'n>(
        &mut self,
        name: &'v str,
        member: Instance<'v>,
        target: NodeId,
        known: impl FnOnce() -> Vec<&'n str>,
    ) -> Vec<Problem> {
        if !self.graph.node(target).is_some_and(|node| node.is_false) {
            return self.explain(member, target);
        }
        let near = closest(name, &known()).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let expected = format!("no property of this name{near}");
        vec![self.problem(&expected, describe_value(member.value, member.is_secret))]
    }

    /// Returns the names of the properties of a subschema and of those that apply with it.
    fn named_beneath(&self, node: &'a SchemaNode) -> Vec<&'a str> {
        const MAX_SUBSCHEMAS: usize = 256;
        let mut names: Vec<&str> = Vec::new();
        let mut pending = vec![node];
        let mut seen = 0;
        while let Some(next) = pending.pop().filter(|_| seen < MAX_SUBSCHEMAS) {
            seen += 1;
            names.extend(next.properties.named.keys().map(String::as_str));
            pending.extend(next.same_value_targets().filter_map(|target| self.graph.node(target)));
        }
        names
    }

    fn missing_problem(&self, name: &str, node: &SchemaNode) -> Problem {
        let words = node.properties.named.get(name).map(|target| format!(" ({})", describe(self.graph, *target)));
        self.problem(&format!("the property `{name}`{}", words.unwrap_or_default()), String::new())
    }

    fn explain_items(&mut self, items: &'v [Value], is_secret: bool, node: &SchemaNode) -> Vec<Problem> {
        const MAX_COMPARED_ITEMS: usize = 1_000;
        let rules = &node.items;
        let mut problems = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let Some(target) = rules.prefix.get(index).copied().or(rules.rest) else { break };
            if problems.len() >= MAX_COERCIONS || self.steps > MAX_EXPLANATION {
                break;
            }
            self.path.push(Segment::Index(index));
            problems.extend(self.explain(Instance { value, is_secret }, target));
            self.path.pop();
        }
        let contained = rules.contains.filter(|_| problems.is_empty());
        let missing =
            contained.filter(|target| !items.iter().any(|value| self.passes(Instance { value, is_secret }, *target)));
        if let Some(target) = missing {
            let expected = format!("an array with {}", describe(self.graph, target));
            problems.push(self.problem(&expected, format!("an array of {}", count(items.len(), "item"))));
        }
        if node.assertions.unique_items && problems.is_empty() && items.len() <= MAX_COMPARED_ITEMS {
            let mut seen = BTreeSet::new();
            let again = items.iter().enumerate().find(|(_, item)| !seen.insert(item.to_string()));
            if let Some((index, item)) = again {
                self.path.push(Segment::Index(index));
                problems.push(self.problem("no item twice", describe_value(item, is_secret)));
                self.path.pop();
            }
        }
        problems
    }

    fn explain_same_value(&mut self, instance: Instance<'v>, node: &SchemaNode) -> Vec<Problem> {
        let mut problems = Vec::new();
        let condition = node.same_value.iter().find(|edge| edge.role == Role::If);
        let holds = condition.map(|edge| self.passes(instance, edge.target));
        for edge in &node.same_value {
            let applies = match &edge.role {
                Role::AllOf | Role::Reference => true,
                Role::Then => holds == Some(true),
                Role::Else => holds == Some(false),
                Role::Dependent(name) => instance.value.get(name).is_some(),
                Role::Not => {
                    if self.passes(instance, edge.target) {
                        let expected = format!("anything but {}", describe(self.graph, edge.target));
                        problems.push(self.problem(&expected, describe_value(instance.value, instance.is_secret)));
                    }
                    false
                }
                Role::AnyOf | Role::OneOf | Role::If | Role::DynamicReference => false,
            };
            if applies && problems.len() < MAX_COERCIONS {
                problems.extend(self.explain(instance, edge.target));
            }
        }
        for role in [Role::AnyOf, Role::OneOf, Role::DynamicReference] {
            problems.extend(self.explain_branches(instance, node, &role));
        }
        problems
    }

    /// Explains alternatives: the types of all if none has the right one, else the branch that is nearest.
    fn explain_branches(&mut self, instance: Instance<'v>, node: &SchemaNode, role: &Role) -> Vec<Problem> {
        let targets: Vec<NodeId> =
            node.same_value.iter().filter(|edge| edge.role == *role).map(|edge| edge.target).collect();
        let mut branches: Vec<Vec<Problem>> = targets.iter().map(|target| self.explain(instance, *target)).collect();
        let matching = branches.iter().filter(|problems| problems.is_empty()).count();
        if targets.is_empty() || matching == 1 || (matching > 1 && *role != Role::OneOf) {
            return Vec::new();
        }
        if matching > 1 {
            let expected = format!("a value that fits exactly one of {} alternatives", targets.len());
            return vec![self.problem(&expected, format!("one that fits {matching}"))];
        }
        let here = self.problem("", String::new()).pointer;
        let types = branches.iter().map(|problems| match problems.as_slice() {
            [only] if only.pointer == here => only.types,
            _ => None,
        });
        if let Some(types) = types.reduce(|all, next| Some(all?.union(next?))).flatten() {
            let mut words: Vec<String> = targets.iter().map(|target| describe(self.graph, *target)).collect();
            words.dedup();
            return vec![self.type_problem(instance, types, &words.join(" or "))];
        }
        // A branch of the wrong type, or with another discriminator, was hardly meant.
        branches.sort_by_key(|problems| {
            let has_type = problems.iter().any(|problem| problem.types.is_some() && problem.pointer == here);
            let has_choice = problems.iter().any(|problem| problem.is_choice);
            (has_type, has_choice, problems.len())
        });
        branches.into_iter().next().unwrap_or_default()
    }
}
