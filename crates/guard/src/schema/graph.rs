//! Graph of the subschemas that a schema can apply, with references resolved.

use super::InvalidSchema;
use super::cost::Costs;
use super::json_types::JsonTypes;
use super::limits::{MAX_CHAIN, MAX_COMPILE_STACK, MAX_EXPANDED_REFERENCES, NESTED_REFERENCES};
use super::schema_node::{NodeId, Role, SameValue, SchemaNode};

/// Subschemas reachable from the root, which is the first one.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<SchemaNode>,
    /// Position of each subschema in an order in which it precedes those that it applies to the same value.
    ranks: Vec<usize>,
    by_rank: Vec<NodeId>,
    pub(super) costs: Costs,
}

pub(super) const ROOT: NodeId = 0;

impl Graph {
    /// Orders the subschemas, and refuses a schema that applies too many of them to one value.
    pub(super) fn new(mut nodes: Vec<SchemaNode>) -> Result<Self, InvalidSchema> {
        let targets = |nodes: &[SchemaNode], id: NodeId| -> Vec<NodeId> {
            nodes.get(id).map(|node| node.same_value_targets().collect()).unwrap_or_default()
        };
        let order = post_order(nodes.len(), |id| targets(&nodes, id)).ok_or(InvalidSchema::CircularReference)?;
        let mut chains = vec![0_u32; nodes.len()];
        for id in &order {
            let longest = targets(&nodes, *id).iter().filter_map(|target| chains.get(*target)).max().copied();
            if let Some(chain) = chains.get_mut(*id) {
                *chain = longest.unwrap_or(0) + 1;
                if *chain > MAX_CHAIN {
                    return Err(InvalidSchema::TooDeep);
                }
            }
            mark_secret(&mut nodes, *id);
        }
        if compile_stack(&nodes) > MAX_COMPILE_STACK {
            return Err(InvalidSchema::TooDeep);
        }
        let costs = Costs::new(&nodes, &order);
        if costs.highest_per_value > MAX_EXPANDED_REFERENCES {
            return Err(InvalidSchema::TooManyExpandedReferences);
        }
        let mut ranks = vec![0; nodes.len()];
        let by_rank: Vec<NodeId> = order.into_iter().rev().collect();
        for (rank, id) in by_rank.iter().enumerate() {
            if let Some(slot) = ranks.get_mut(*id) {
                *slot = rank;
            }
        }
        Ok(Self { nodes, ranks, by_rank, costs })
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&SchemaNode> {
        self.nodes.get(id)
    }

    pub(super) fn rank(&self, id: NodeId) -> usize {
        self.ranks.get(id).copied().unwrap_or_default()
    }

    pub(super) fn at_rank(&self, rank: usize) -> Option<(NodeId, &SchemaNode)> {
        let id = *self.by_rank.get(rank)?;
        Some((id, self.nodes.get(id)?))
    }

    /// Checks whether every value of these types is certainly valid. Only looks at what is written down at once.
    pub(super) fn accepts_all(&self, id: NodeId, types: JsonTypes) -> bool {
        let accepts = |target: NodeId| {
            self.node(target).is_some_and(|node| {
                !node.is_false
                    && node.assertions.accept_all(JsonTypes::ALL)
                    && node.same_value.is_empty()
                    && node.member_targets().next().is_none()
                    && node.properties.dependent.is_empty()
            })
        };
        self.node(id).is_some_and(|node| {
            !node.is_false
                && node.assertions.accept_all(types)
                && node.same_value.is_empty()
                && node.properties.dependent.is_empty()
                && node.member_targets().all(accepts)
        })
    }
}

/// Returns how many subschemas are on the stack of the validator at most while it compiles the schema: it descends into
/// subschemas, and into the targets of a few nested references.
fn compile_stack(nodes: &[SchemaNode]) -> u32 {
    let is_reference = |edge: &&SameValue| matches!(edge.role, Role::Reference | Role::DynamicReference);
    let inner = |id: NodeId| -> Vec<NodeId> {
        let Some(node) = nodes.get(id) else { return Vec::new() };
        let applied = node.same_value.iter().filter(|edge| !is_reference(edge)).map(|edge| edge.target);
        applied.chain(node.member_targets()).collect()
    };
    let Some(order) = post_order(nodes.len(), inner) else { return u32::MAX };
    let mut with_fewer_references = vec![0_u32; nodes.len()];
    for _ in 0..=NESTED_REFERENCES {
        let mut depths = vec![0_u32; nodes.len()];
        for id in &order {
            let below = inner(*id).into_iter().filter_map(|target| depths.get(target)).max().copied();
            let references = nodes.get(*id).into_iter().flat_map(|node| &node.same_value).filter(is_reference);
            let referred = references.filter_map(|edge| with_fewer_references.get(edge.target)).max().copied();
            if let Some(depth) = depths.get_mut(*id) {
                *depth = 1 + below.max(referred).unwrap_or(0);
            }
        }
        with_fewer_references = depths;
    }
    with_fewer_references.first().copied().unwrap_or(0)
}

/// Lets a subschema count as secret if one that always applies with it does.
fn mark_secret(nodes: &mut [SchemaNode], id: NodeId) {
    let is_secret = nodes.get(id).is_some_and(|node| {
        let always = node.same_value.iter().filter(|edge| matches!(edge.role, Role::AllOf | Role::Reference));
        always.filter_map(|edge| nodes.get(edge.target)).any(|target| target.assertions.is_secret)
    });
    if let Some(node) = nodes.get_mut(id).filter(|_| is_secret) {
        node.assertions.is_secret = true;
    }
}

/// Returns all indexes, each after its targets, or `None` if there is a cycle.
pub(super) fn post_order(count: usize, targets: impl Fn(NodeId) -> Vec<NodeId>) -> Option<Vec<NodeId>> {
    #[derive(Copy, Clone, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; count];
    let mut order = Vec::with_capacity(count);
    for start in 0..count {
        let mut stack = vec![(start, Vec::new(), false)];
        while let Some((id, pending, is_open)) = stack.last_mut() {
            let id = *id;
            let state = states.get_mut(id)?;
            if !*is_open {
                match state {
                    State::Open => return None,
                    State::Done => {
                        stack.pop();
                        continue;
                    }
                    State::New => {
                        *state = State::Open;
                        *is_open = true;
                        *pending = targets(id);
                    }
                }
            }
            match pending.pop() {
                Some(next) => stack.push((next, Vec::new(), false)),
                None => {
                    *state = State::Done;
                    order.push(id);
                    stack.pop();
                }
            }
        }
    }
    Some(order)
}
