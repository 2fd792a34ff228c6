//! Bounds the work of a check for one instance, where the bound for all instances of its size is too high.
//!
//! Walks the instance with the set of subschemas that apply to each value, and how often each does. A subschema that
//! applies 2^30 times to a value counts once here, so metering takes few steps where the validator would take many.

use super::cost::pattern_work;
use super::graph::{Graph, ROOT};
use super::limits::{MAX_METERING, MAX_STACK, MAX_WORK};
use super::schema_node::{NodeId, SchemaNode};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Number of times that the validator runs a subschema on one value, at most.
#[derive(Copy, Clone, Default)]
struct Load {
    judge: u64,
    /// Mark that `Runs::mark` set.
    mark: u64,
    /// Longest chain of subschemas that leads here.
    stack: u32,
}

/// Subschemas that apply to a value, by rank.
type Loads = BTreeMap<usize, Load>;

struct Meter<'a> {
    graph: &'a Graph,
    work: u64,
    /// Steps of the metering itself, which have a budget too.
    steps: u64,
}

/// The budget is used up, or the stack would be too high.
struct WorkOverrun;

/// Returns a bound of the work to check the instance, or `None` if that or the metering itself is too much.
pub(super) fn measure(graph: &Graph, instance: &Value) -> Option<u64> {
    let mut meter = Meter { graph, work: 0, steps: 0 };
    let root = Load { judge: 1, mark: 0, stack: 1 };
    let loads = Loads::from([(graph.rank(ROOT), root)]);
    meter.visit(instance, loads).ok().map(|_| meter.work)
}

impl Meter<'_> {
    fn spend(&mut self, units: u64) -> Result<(), WorkOverrun> {
        self.work = self.work.saturating_add(units);
        if self.work > MAX_WORK { Err(WorkOverrun) } else { Ok(()) }
    }

    fn step(&mut self, count: usize) -> Result<(), WorkOverrun> {
        self.steps = self.steps.saturating_add(count as u64);
        if self.steps > MAX_METERING { Err(WorkOverrun) } else { Ok(()) }
    }

    /// Adds up the work for a value and its members. Returns its size in bytes, about as in JSON.
    fn visit(&mut self, value: &Value, pending: Loads) -> Result<u64, WorkOverrun> {
        let loads = self.expand(pending, text_length(value))?;
        let size = match value {
            Value::Array(items) => self.visit_items(items, &loads)?,
            Value::Object(members) => self.visit_members(members, &loads)?,
            Value::String(text) => text.len() as u64 + 3,
            _ => 8,
        };
        for (rank, load) in &loads {
            let per_kib = self.graph.at_rank(*rank).map_or(0, |(_, node)| node.weight.per_kib);
            self.spend(load.judge.saturating_mul(per_kib).saturating_mul(size) / 1024)?;
        }
        Ok(size)
    }

    /// Adds what applies to the same value, in the order of ranks so that each subschema is expanded once.
    fn expand(&mut self, mut pending: Loads, text: u64) -> Result<Loads, WorkOverrun> {
        let graph = self.graph;
        let mut loads = Loads::new();
        while let Some((rank, mut load)) = pending.pop_first() {
            let Some((_, node)) = graph.at_rank(rank) else { continue };
            if load.stack > MAX_STACK {
                return Err(WorkOverrun);
            }
            if node.has_unevaluated() {
                load.mark = load.mark.saturating_add(load.judge);
            }
            let own = node.weight.fixed.saturating_add(node.weight.per_text_kib.saturating_mul(text) / 1024);
            self.spend(load.judge.saturating_mul(own).saturating_add(load.mark))?;
            self.step(1 + node.same_value.len())?;
            for target in node.same_value_targets() {
                let judge = load.judge.saturating_add(load.mark);
                add(&mut pending, graph.rank(target), Load { judge, mark: load.mark, stack: load.stack + 1 });
            }
            loads.insert(rank, load);
        }
        Ok(loads)
    }

    fn visit_items(&mut self, items: &[Value], loads: &Loads) -> Result<u64, WorkOverrun> {
        let graph = self.graph;
        let mut size = 2;
        for (index, item) in items.iter().enumerate() {
            let mut pending = Loads::new();
            for (node, load) in active(graph, loads) {
                let rules = &node.items;
                self.step(1)?;
                let positional = rules.prefix.get(index).copied().or(rules.rest);
                let targets = [positional, rules.contains, rules.unevaluated];
                self.add_members(&mut pending, load, targets.into_iter().flatten())?;
            }
            size += self.visit(item, pending)?;
        }
        Ok(size)
    }

    fn visit_members(&mut self, members: &Map<String, Value>, loads: &Loads) -> Result<u64, WorkOverrun> {
        let graph = self.graph;
        let mut size = 2;
        for (name, value) in members {
            let mut pending = Loads::new();
            let mut for_name = Loads::new();
            for (node, load) in active(graph, loads) {
                let rules = &node.properties;
                let runs = load.judge.saturating_add(load.mark);
                let states: u64 = rules.by_pattern.iter().map(|(pattern, _)| pattern_work(pattern.states)).sum();
                let matching = states.saturating_mul(name.len() as u64 + 16) / 1024;
                self.spend(runs.saturating_mul(1 + matching + rules.by_pattern.len() as u64))?;
                let named = rules.named.get(name).copied();
                let by_pattern = rules.by_pattern.iter().map(|(_, target)| *target);
                let others = [named.map_or(rules.additional, Some), rules.unevaluated];
                self.add_members(&mut pending, load, by_pattern.chain(others.into_iter().flatten()))?;
                self.add_members(&mut for_name, load, rules.names.into_iter())?;
            }
            if !for_name.is_empty() {
                self.expand(for_name, name.len() as u64)?;
            }
            size += name.len() as u64 + 4 + self.visit(value, pending)?;
        }
        Ok(size)
    }

    fn add_members(
        &mut self,
        pending: &mut Loads,
        load: Load,
        targets: impl Iterator<Item = NodeId>,
    ) -> Result<(), WorkOverrun> {
        for target in targets {
            self.step(1)?;
            let judge = load.judge.saturating_add(load.mark);
            add(pending, self.graph.rank(target), Load { judge, mark: 0, stack: load.stack + 1 });
        }
        Ok(())
    }
}

fn active<'g>(graph: &'g Graph, loads: &Loads) -> Vec<(&'g SchemaNode, Load)> {
    loads.iter().filter_map(|(rank, load)| Some((graph.at_rank(*rank)?.1, *load))).collect()
}

fn add(pending: &mut Loads, rank: usize, load: Load) {
    let sum = pending.entry(rank).or_default();
    sum.judge = sum.judge.saturating_add(load.judge);
    sum.mark = sum.mark.saturating_add(load.mark);
    sum.stack = sum.stack.max(load.stack);
}

fn text_length(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64 + 16)
}

#[cfg(test)]
mod tests {
    use super::super::graph_builder::build_graph;
    use super::super::{Schema, SchemaDraft};
    use super::*;
    use jsonschema::{Keyword, ValidationError};
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Keyword that counts how often its subschema is run.
    struct Counter(Arc<AtomicU64>);

    impl<'i> Keyword<'i> for Counter {
        fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn is_valid(&self, _: &'i Value) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    fn add_counters(schema: &mut Value) {
        match schema {
            Value::Array(items) => items.iter_mut().for_each(add_counters),
            Value::Object(members) => {
                let is_schema = !members.is_empty() && !members.contains_key("d0") && !members.contains_key("x");
                members.values_mut().for_each(add_counters);
                if is_schema {
                    members.insert("count".to_owned(), json!(true));
                }
            }
            _ => {}
        }
    }

    /// Returns how often the validator runs subschemas.
    fn runs(mut schema: Value, instance: &Value) -> u64 {
        add_counters(&mut schema);
        let counter = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&counter);
        let validator = jsonschema::options()
            .with_keyword("count", move |_, _, _| Ok(Box::new(Counter(Arc::clone(&shared)))))
            .build(&schema)
            .unwrap();
        let _ = validator.is_valid(instance);
        counter.load(Ordering::Relaxed)
    }

    fn nest(depth: usize, outer: impl Fn(Value) -> Value, inner: Value) -> Value {
        (0..depth).fold(inner, |inner, _| outer(inner))
    }

    /// References that double `depth` times, by this link.
    fn doubled(depth: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
        let mut definitions = json!({});
        for index in 0..depth {
            definitions[format!("d{index}")] = link(json!({"$ref": format!("#/$defs/d{}", index + 1)}));
        }
        definitions[format!("d{depth}")] = last;
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    fn cases() -> Vec<(Value, Value)> {
        let path = |depth| nest(depth, |inner| json!({"x": inner}), json!(1));
        let marks = |branch: &str| {
            let outer = |inner| json!({branch: [inner], "unevaluatedProperties": false});
            nest(8, outer, json!({"properties": {"x": {"minimum": 0}}}))
        };
        let both = |link: Value| json!({"allOf": [link, link]});
        let below = |link: Value| json!({"properties": {"x": {"allOf": [link, link]}}});
        vec![
            (doubled(10, both, json!({"minimum": 0})), json!(1)),
            (doubled(10, |link| json!({"anyOf": [{"allOf": [link, false]}, link]}), json!({"minimum": 0})), json!(1)),
            (doubled(8, below, json!({"minimum": 0})), path(8)),
            (
                json!({"allOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]}),
                path(8),
            ),
            (marks("allOf"), json!({"x": 1})),
            (marks("anyOf"), json!({"x": 1})),
            (
                json!({"prefixItems": [{"minimum": 0}], "items": {"$ref": "#"}, "contains": {"type": "integer"}}),
                json!([1, [2, [3]]]),
            ),
            (json!({"if": {"minimum": 0}, "then": {"minimum": 0}, "else": false, "not": {"maximum": 0}}), json!(1)),
        ]
    }

    #[test]
    fn the_measure_covers_every_run_of_the_validator() {
        for (schema, instance) in cases() {
            let graph = build_graph(&schema, SchemaDraft::Draft2020).unwrap();
            let runs = runs(schema.clone(), &instance);
            let measured = measure(&graph, &instance).unwrap();
            assert!(runs >= 3, "{schema}: only {runs} runs were counted");
            assert!(measured >= runs, "{schema}: {runs} runs, measured {measured}");
            let bound = graph.costs.bound(instance.to_string().len(), instance.to_string().len() / 2 + 1);
            assert!(bound >= measured, "{schema}: measured {measured}, bound {bound}");
        }
    }

    #[test]
    fn the_measure_of_an_honest_recursive_schema_grows_with_the_instance() {
        let tree = json!({"properties": {"v": {"type": "integer"}, "x": {"$ref": "#"}}});
        let graph = build_graph(&tree, SchemaDraft::Draft2020).unwrap();
        let measured = |depth| measure(&graph, &nest(depth, |inner| json!({"v": 1, "x": inner}), json!({}))).unwrap();
        assert_eq!(graph.costs.bound(10, 6), u64::MAX);
        assert!(measured(60) < 2 * measured(30) + 10, "{} {}", measured(60), measured(30));
        let fork = json!({"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]});
        let schema = Schema::compile(fork.to_string().as_bytes()).unwrap();
        let deep = nest(60, |inner| json!({"x": inner}), json!({}));
        assert_eq!(schema.check(deep.to_string().as_bytes()), super::super::SchemaValidity::TooCostly);
    }
}
