//! Work that a check can cause, computed from the schema alone.

use super::graph::{ROOT, post_order};
use super::limits::MAX_STACK;
use super::schema_node::{NodeId, SchemaNode, Weight};

/// Work of the schema, as if every reference were expanded.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Highest work of any subschema for one value, with those that it applies to the same value.
    pub(super) highest_per_value: u64,
    /// Work per value of the whole schema, members included. `None` for a recursive schema, and for one whose chains
    /// could exceed the stack: these are metered.
    whole: Option<Weight>,
}

/// Work of a subschema in the two ways in which the validator runs it.
#[derive(Copy, Clone, Debug, Default)]
struct Runs {
    /// To judge a value.
    judge: Weight,
    /// To find out what it evaluates, for an `unevaluatedProperties` or `unevaluatedItems` above it. That judges each
    /// branch again, so nested `unevaluatedProperties` multiply.
    mark: Weight,
    /// Longest chain of subschemas below.
    chain: u32,
}

impl Weight {
    pub(super) fn add(&mut self, other: Self) {
        self.fixed = self.fixed.saturating_add(other.fixed);
        self.per_text_kib = self.per_text_kib.saturating_add(other.per_text_kib);
        self.per_kib = self.per_kib.saturating_add(other.per_kib);
    }
}

impl Costs {
    /// Adds up the work; `order` has each subschema after those that it applies to the same value.
    pub(super) fn new(nodes: &[SchemaNode], order: &[NodeId]) -> Self {
        let per_value = runs(nodes, order, false);
        let highest = per_value.iter().map(|runs| runs.judge.fixed).max();
        let all = |id: NodeId| -> Vec<NodeId> {
            nodes
                .get(id)
                .map(|node| node.same_value_targets().chain(node.member_targets()).collect())
                .unwrap_or_default()
        };
        let whole = post_order(nodes.len(), all)
            .and_then(|order| runs(nodes, &order, true).get(ROOT).copied())
            .filter(|runs| runs.chain <= MAX_STACK)
            .map(|runs| runs.judge);
        Self { highest_per_value: highest.unwrap_or_default(), whole }
    }

    /// Returns a bound of the work for any instance of this length and number of values, names included, or the maximum
    /// for a recursive schema.
    pub(super) fn bound(&self, instance_bytes: usize, values: usize) -> u64 {
        let Some(whole) = self.whole else { return u64::MAX };
        let (bytes, values) = (instance_bytes as u64, values as u64);
        let by_text = whole.per_text_kib.saturating_mul(bytes) / 1024;
        let by_size = whole.per_kib.saturating_mul(bytes) / 1024;
        whole.fixed.saturating_mul(values).saturating_add(by_text).saturating_add(by_size)
    }
}

/// Returns the work of a pattern per KiB of text: the engine visits each state per byte in the worst case.
pub(super) fn pattern_work(states: usize) -> u64 {
    const STATE_VISITS_PER_UNIT: u64 = 16;
    (states as u64).saturating_mul(1024 / STATE_VISITS_PER_UNIT)
}

fn runs(nodes: &[SchemaNode], order: &[NodeId], with_members: bool) -> Vec<Runs> {
    let mut all = vec![Runs::default(); nodes.len()];
    for id in order {
        let Some(node) = nodes.get(*id) else { continue };
        let mut sum = Runs { judge: node.weight, mark: Weight { fixed: 1, ..Weight::default() }, chain: 0 };
        for target in node.same_value_targets().filter_map(|target| all.get(target)) {
            sum.chain = sum.chain.max(target.chain);
            sum.judge.add(target.judge);
            sum.mark.add(target.judge);
            sum.mark.add(target.mark);
        }
        if with_members {
            for target in node.member_targets().filter_map(|target| all.get(target)) {
                sum.chain = sum.chain.max(target.chain);
                sum.judge.add(target.judge);
                sum.mark.add(target.judge);
            }
        }
        sum.chain += 1;
        if node.has_unevaluated() {
            sum.judge.add(sum.mark);
        }
        if let Some(slot) = all.get_mut(*id) {
            *slot = sum;
        }
    }
    all
}
