//! One subschema, parsed for metering and explaining.

use super::assertions::Assertions;
use super::pattern::Pattern;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a subschema in its graph.
pub(super) type NodeId = usize;

/// Keyword by which a subschema applies another one to the same value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    AllOf,
    AnyOf,
    OneOf,
    Not,
    If,
    Then,
    Else,
    Reference,
    /// One of the subschemas that `$dynamicRef` may lead to. Which one depends on the path of evaluation.
    DynamicReference,
    /// Applies if the object has this property.
    Dependent(String),
}

/// Application of another subschema to the same value.
#[derive(Debug)]
pub(super) struct SameValue {
    pub(super) role: Role,
    pub(super) target: NodeId,
}

/// Subschemas for the properties of an object.
#[derive(Debug, Default)]
pub(super) struct PropertyRules {
    pub(super) named: BTreeMap<String, NodeId>,
    pub(super) by_pattern: Vec<(Arc<Pattern>, NodeId)>,
    pub(super) additional: Option<NodeId>,
    pub(super) names: Option<NodeId>,
    pub(super) unevaluated: Option<NodeId>,
    /// Properties that another property requires.
    pub(super) dependent: Vec<(String, Vec<String>)>,
}

/// Subschemas for the items of an array.
#[derive(Debug, Default)]
pub(super) struct ItemRules {
    pub(super) prefix: Vec<NodeId>,
    pub(super) rest: Option<NodeId>,
    pub(super) contains: Option<NodeId>,
    pub(super) unevaluated: Option<NodeId>,
}

/// A subschema of the schema.
#[derive(Debug)]
pub(super) struct SchemaNode {
    /// True for the schema `false`.
    pub(super) is_false: bool,
    pub(super) assertions: Assertions,
    pub(super) same_value: Vec<SameValue>,
    pub(super) properties: PropertyRules,
    pub(super) items: ItemRules,
    /// Work of the keywords themselves.
    pub(super) weight: Weight,
}

/// Work of a subschema for one value, without the subschemas that it applies.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) fixed: u64,
    /// Work per KiB of the value's strings (patterns and lengths).
    pub(super) per_text_kib: u64,
    /// Work per KiB of the whole value (`uniqueItems`).
    pub(super) per_kib: u64,
}

impl SchemaNode {
    pub(super) fn has_unevaluated(&self) -> bool {
        self.properties.unevaluated.is_some() || self.items.unevaluated.is_some()
    }

    /// Returns the subschemas that apply to the same value.
    pub(super) fn same_value_targets(&self) -> impl Iterator<Item = NodeId> {
        self.same_value.iter().map(|edge| edge.target)
    }

    /// Returns the subschemas that apply to a property, a name or an item.
    pub(super) fn member_targets(&self) -> impl Iterator<Item = NodeId> {
        let rules = &self.properties;
        let properties = rules.named.values().copied().chain(rules.by_pattern.iter().map(|(_, target)| *target));
        let others = [rules.additional, rules.names, rules.unevaluated].into_iter().flatten();
        let items = [self.items.rest, self.items.contains, self.items.unevaluated].into_iter().flatten();
        properties.chain(others).chain(self.items.prefix.iter().copied()).chain(items)
    }
}
