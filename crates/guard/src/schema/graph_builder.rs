//! Builds the graph of a schema: parses the reachable subschemas and resolves their references.

use super::SchemaDraft;
use super::assertions::{Assertions, names};
use super::cost::pattern_work;
use super::graph::Graph;
use super::invalid_schema::InvalidSchema;
use super::limits::{MAX_PATTERN_STATES, MAX_VIOLATION_CHARS};
use super::pattern::Pattern;
use super::schema_node::{ItemRules, NodeId, PropertyRules, Role, SameValue, SchemaNode, Weight};
use referencing::{Registry, Resolver, Retrieve, Uri};
use serde_json::{Map, Value};
use signalbox_wire::printable;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Refuses every reference out of the schema.
struct NoRetriever;

impl Retrieve for NoRetriever {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("references are not fetched".into())
    }
}

/// Base URI and dialect that apply to a subschema.
#[derive(Clone)]
struct Scope<'a> {
    resolver: Resolver<'a>,
    draft: referencing::Draft,
}

struct PendingNode<'a> {
    id: NodeId,
    schema: &'a Value,
    scope: Scope<'a>,
}

/// A `$dynamicRef` whose targets are known only when every anchor is.
struct DynamicReference {
    from: NodeId,
    anchor: String,
}

#[derive(Default)]
struct GraphBuilder<'a> {
    nodes: Vec<SchemaNode>,
    /// Subschemas by the address of their JSON, which stays in place while the graph is built.
    ids: HashMap<usize, NodeId>,
    pending: VecDeque<PendingNode<'a>>,
    dynamic_references: Vec<DynamicReference>,
    dynamic_anchors: BTreeMap<String, Vec<NodeId>>,
    patterns: HashMap<String, Arc<Pattern>>,
    pattern_states: usize,
}

/// Builds the graph of a schema in this dialect.
pub(super) fn build_graph(schema: &Value, draft: SchemaDraft) -> Result<Graph, InvalidSchema> {
    const DEFAULT_BASE: &str = "json-schema:///";
    let draft = draft.to_library();
    let resource = draft.create_resource_ref(schema);
    let base = referencing::uri::from_str(resource.id().unwrap_or(DEFAULT_BASE)).map_err(unresolved)?;
    let registry = Registry::new().retriever(NoRetriever).draft(draft);
    let registry = registry.add(base.as_str(), resource).and_then(|registry| registry.prepare()).map_err(unresolved)?;
    let resolver = registry.resolver(base);
    let mut builder = GraphBuilder::default();
    let scope = Scope { resolver, draft };
    builder.node(schema, scope.clone());
    if mentions_dynamic_reference(schema) {
        builder.add_dynamic_anchors(schema, &scope)?;
    }
    while let Some(pending) = builder.pending.pop_front() {
        builder.parse(&pending)?;
    }
    builder.link_dynamic_references();
    Graph::new(builder.nodes)
}

/// Turns an error of reference resolution into a reason.
pub(super) fn unresolved(error: referencing::Error) -> InvalidSchema {
    match error {
        referencing::Error::Unretrievable { uri, .. } => {
            InvalidSchema::RemoteReference { uri: printable::beginning(&uri, MAX_VIOLATION_CHARS) }
        }
        referencing::Error::UnknownSpecification { specification } => {
            InvalidSchema::UnknownDialect { uri: printable::beginning(&specification, MAX_VIOLATION_CHARS) }
        }
        other => InvalidSchema::other(other),
    }
}

fn mentions_dynamic_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(mentions_dynamic_reference),
        Value::Object(members) => {
            members.contains_key("$dynamicRef") || members.values().any(mentions_dynamic_reference)
        }
        _ => false,
    }
}

impl<'a> Scope<'a> {
    /// Returns the scope within a subschema, which may have an `$id` and a dialect of its own.
    fn within(&self, schema: &Value) -> Result<Self, InvalidSchema> {
        let draft = self.draft.detect(schema);
        if SchemaDraft::from_library(draft).is_none() {
            let uri = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
            return Err(InvalidSchema::UnknownDialect { uri: printable::beginning(uri, MAX_VIOLATION_CHARS) });
        }
        let resolver = self.resolver.in_subresource(draft.create_resource_ref(schema)).map_err(unresolved)?;
        Ok(Self { resolver, draft })
    }
}

impl<'a> GraphBuilder<'a> {
    /// Returns the node of a subschema, which is parsed later if it is new.
    fn node(&mut self, schema: &'a Value, scope: Scope<'a>) -> NodeId {
        let id = self.nodes.len();
        match self.ids.entry(std::ptr::from_ref(schema) as usize) {
            std::collections::hash_map::Entry::Occupied(known) => return *known.get(),
            std::collections::hash_map::Entry::Vacant(slot) => slot.insert(id),
        };
        self.nodes.push(SchemaNode {
            is_false: schema == &Value::Bool(false),
            assertions: Assertions::parse(&Map::new(), None),
            same_value: Vec::new(),
            properties: PropertyRules::default(),
            items: ItemRules::default(),
            weight: Weight { fixed: 1, ..Weight::default() },
        });
        self.pending.push_back(PendingNode { id, schema, scope });
        id
    }

    /// Returns the node of a direct subschema.
    fn child(&mut self, schema: &'a Value, scope: &Scope<'a>) -> Result<NodeId, InvalidSchema> {
        Ok(self.node(schema, scope.within(schema)?))
    }

    /// Registers every subschema with a `$dynamicAnchor`, because `$dynamicRef` may lead to one that nothing else does.
    fn add_dynamic_anchors(&mut self, schema: &'a Value, scope: &Scope<'a>) -> Result<(), InvalidSchema> {
        if schema.get("$dynamicAnchor").is_some_and(Value::is_string) {
            self.node(schema, scope.clone());
        }
        for child in scope.draft.subresources_of(schema) {
            self.add_dynamic_anchors(child, &scope.within(child)?)?;
        }
        Ok(())
    }

    fn parse(&mut self, pending: &PendingNode<'a>) -> Result<(), InvalidSchema> {
        let Some(schema) = pending.schema.as_object() else { return Ok(()) };
        let scope = &pending.scope;
        let is_draft7 = scope.draft == referencing::Draft::Draft7;
        // Draft-07 ignores what is beside a reference.
        if is_draft7 && let Some(Value::String(reference)) = schema.get("$ref") {
            let target = self.lookup(scope, reference)?;
            if let Some(node) = self.nodes.get_mut(pending.id) {
                node.same_value.push(SameValue { role: Role::Reference, target });
            }
            return Ok(());
        }
        let pattern = schema.get("pattern").and_then(Value::as_str).map(|text| self.pattern(text)).transpose()?;
        let properties = self.property_rules(schema, scope)?;
        let node = SchemaNode {
            is_false: false,
            weight: weigh(schema, pattern.as_deref(), &properties),
            assertions: Assertions::parse(schema, pattern),
            same_value: self.same_value(pending.id, schema, scope)?,
            properties,
            items: self.item_rules(schema, scope)?,
        };
        if let Some(anchor) = schema.get("$dynamicAnchor").and_then(Value::as_str) {
            self.dynamic_anchors.entry(anchor.to_owned()).or_default().push(pending.id);
        }
        if let Some(slot) = self.nodes.get_mut(pending.id) {
            *slot = node;
        }
        Ok(())
    }

    fn lookup(&mut self, scope: &Scope<'a>, reference: &str) -> Result<NodeId, InvalidSchema> {
        let (schema, resolver, draft) = scope.resolver.lookup(reference).map_err(unresolved)?.into_inner();
        let draft = draft.detect(schema);
        Ok(self.node(schema, Scope { resolver, draft }))
    }

    fn pattern(&mut self, source: &str) -> Result<Arc<Pattern>, InvalidSchema> {
        if let Some(known) = self.patterns.get(source) {
            return Ok(Arc::clone(known));
        }
        let pattern = Arc::new(Pattern::new(source)?);
        self.pattern_states += pattern.states;
        if self.pattern_states > MAX_PATTERN_STATES {
            return Err(InvalidSchema::TooManyPatterns);
        }
        self.patterns.insert(source.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    }

    fn same_value(
        &mut self,
        id: NodeId,
        schema: &'a Map<String, Value>,
        scope: &Scope<'a>,
    ) -> Result<Vec<SameValue>, InvalidSchema> {
        let mut edges = Vec::new();
        for (name, role) in [("allOf", Role::AllOf), ("anyOf", Role::AnyOf), ("oneOf", Role::OneOf)] {
            for branch in schema.get(name).and_then(Value::as_array).into_iter().flatten() {
                edges.push(SameValue { role: role.clone(), target: self.child(branch, scope)? });
            }
        }
        let has_condition = schema.contains_key("if");
        for (name, role) in [("not", Role::Not), ("if", Role::If), ("then", Role::Then), ("else", Role::Else)] {
            let applies = has_condition || role == Role::Not;
            if let Some(branch) = schema.get(name).filter(|_| applies) {
                edges.push(SameValue { role, target: self.child(branch, scope)? });
            }
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            for (name, branch) in schema.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                if !branch.is_array() {
                    edges.push(SameValue { role: Role::Dependent(name.clone()), target: self.child(branch, scope)? });
                }
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            edges.push(SameValue { role: Role::Reference, target: self.lookup(scope, reference)? });
        }
        if let Some(reference) = schema.get("$dynamicRef").and_then(Value::as_str) {
            edges.push(SameValue { role: Role::DynamicReference, target: self.lookup(scope, reference)? });
            let anchor = reference.rsplit_once('#').map_or(String::new(), |(_, anchor)| anchor.to_owned());
            self.dynamic_references.push(DynamicReference { from: id, anchor });
        }
        Ok(edges)
    }

    fn property_rules(
        &mut self,
        schema: &'a Map<String, Value>,
        scope: &Scope<'a>,
    ) -> Result<PropertyRules, InvalidSchema> {
        let mut rules = PropertyRules::default();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            rules.named.insert(name.clone(), self.child(property, scope)?);
        }
        for (source, property) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            let pattern = self.pattern(source)?;
            rules.by_pattern.push((pattern, self.child(property, scope)?));
        }
        rules.additional = self.optional(schema, "additionalProperties", scope)?;
        rules.names = self.optional(schema, "propertyNames", scope)?;
        rules.unevaluated = self.optional(schema, "unevaluatedProperties", scope)?;
        for keyword in ["dependentRequired", "dependencies"] {
            for (name, required) in schema.get(keyword).and_then(Value::as_object).into_iter().flatten() {
                if required.is_array() {
                    rules.dependent.push((name.clone(), names(Some(required))));
                }
            }
        }
        Ok(rules)
    }

    fn item_rules(&mut self, schema: &'a Map<String, Value>, scope: &Scope<'a>) -> Result<ItemRules, InvalidSchema> {
        let mut rules = ItemRules {
            contains: self.optional(schema, "contains", scope)?,
            unevaluated: self.optional(schema, "unevaluatedItems", scope)?,
            ..ItemRules::default()
        };
        let prefix = match schema.get("items") {
            // The form of Draft-07.
            Some(Value::Array(prefix)) => {
                rules.rest = self.optional(schema, "additionalItems", scope)?;
                Some(prefix)
            }
            _ => {
                rules.rest = self.optional(schema, "items", scope)?;
                schema.get("prefixItems").and_then(Value::as_array)
            }
        };
        for item in prefix.into_iter().flatten() {
            rules.prefix.push(self.child(item, scope)?);
        }
        Ok(rules)
    }

    fn optional(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        scope: &Scope<'a>,
    ) -> Result<Option<NodeId>, InvalidSchema> {
        schema.get(keyword).map(|value| self.child(value, scope)).transpose()
    }

    /// Lets each `$dynamicRef` lead to every anchor of its name, since the path of evaluation decides among them.
    fn link_dynamic_references(&mut self) {
        for reference in std::mem::take(&mut self.dynamic_references) {
            let anchors = self.dynamic_anchors.get(&reference.anchor).cloned().unwrap_or_default();
            let Some(node) = self.nodes.get_mut(reference.from) else { continue };
            for target in anchors {
                let edge = SameValue { role: Role::DynamicReference, target };
                if !node.same_value.iter().any(|known| known.role == edge.role && known.target == target) {
                    node.same_value.push(edge);
                }
            }
        }
    }
}

/// Returns the work of the keywords themselves, in units of `limits::MAX_WORK`.
fn weigh(schema: &Map<String, Value>, pattern: Option<&Pattern>, properties: &PropertyRules) -> Weight {
    const PER_LENGTH_KIB: u64 = 2;
    const PER_UNIQUE_KIB: u64 = 400;
    const MULTIPLE_OF: u64 = 32;
    let has = |name: &str| schema.contains_key(name);
    let count = |name: &str| schema.get(name).and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let choices = ["enum", "const"].iter().filter_map(|name| schema.get(*name)).map(size).sum::<u64>();
    let dependent: usize = properties.dependent.iter().map(|(_, required)| required.len() + 1).sum();
    let mut weight = Weight {
        fixed: 1 + schema.len() as u64 + count("required") + properties.named.len() as u64 + dependent as u64 + choices,
        per_text_kib: 0,
        per_kib: 0,
    };
    if has("multipleOf") {
        weight.fixed += MULTIPLE_OF;
    }
    if has("minLength") || has("maxLength") {
        weight.per_text_kib += PER_LENGTH_KIB;
    }
    weight.per_text_kib += pattern.map_or(0, |pattern| pattern_work(pattern.states));
    // Names are text too: each pattern is tried on each.
    weight.per_text_kib += properties.by_pattern.iter().map(|(pattern, _)| pattern_work(pattern.states)).sum::<u64>();
    if has("uniqueItems") {
        weight.per_kib += PER_UNIQUE_KIB;
    }
    weight
}

/// Returns the work of comparing a value with this one, which is at most its size.
fn size(value: &Value) -> u64 {
    const BYTES_PER_UNIT: usize = 64;
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(|member| 1 + size(member)).sum::<u64>(),
        Value::String(text) => 1 + (text.len() / BYTES_PER_UNIT) as u64,
        _ => 1,
    }
}
