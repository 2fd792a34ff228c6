//! Compiled schemas of tool definitions, each compiled once.

use crate::argument_filters::Meanings;
use crate::schema::Schema;
use crate::schema::limits::MAX_SCHEMA_BYTES;
use bytes::Bytes;
use signalbox_engine::bounded;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_wire::json;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Maximum number of definitions whose schemas are kept.
pub const MAX_DEFINITIONS: usize = 4096;

/// Schema of a definition.
#[derive(Debug)]
pub enum DeclaredSchema {
    /// The definition has none, or one that accepts everything.
    Any,
    /// A schema that says something.
    Compiled(Schema),
    /// A schema that cannot be used, and why. It is not held against the tool.
    Invalid(String),
}

impl DeclaredSchema {
    fn of(definition: &[u8], member: &str) -> Self {
        let Some(span) = json::member(definition, member) else { return Self::Any };
        match Schema::compile(span.of(definition)) {
            Ok(schema) if schema.accepts_every_object() => Self::Any,
            Ok(schema) => Self::Compiled(schema),
            Err(invalid) => Self::Invalid(invalid.to_string()),
        }
    }
}

/// Schemas of one tool.
#[derive(Debug)]
pub struct ToolSchemas {
    /// Schema of the arguments.
    pub input: DeclaredSchema,
    /// Schema of the structured content of results.
    pub output: DeclaredSchema,
    /// Meanings of the arguments.
    pub meanings: Meanings,
    used: AtomicU64,
}

/// Returns the meanings of the arguments of a tool, as far as its definition tells.
fn meanings(definition: &[u8]) -> Meanings {
    let member = |name: &str| json::member(definition, name).map(|span| span.of(definition));
    let name = member("name").and_then(json::string).unwrap_or_default();
    let schema = member("inputSchema").filter(|schema| schema.len() <= MAX_SCHEMA_BYTES);
    let schema = schema.and_then(|schema| serde_json::from_slice(schema).ok()).unwrap_or_default();
    Meanings::new(&name, &schema)
}

/// Definition that is told from others by its address. It keeps the bytes there, so that no other takes their place.
#[derive(Debug, Clone)]
struct Address(Bytes);

impl Address {
    fn parts(&self) -> (*const u8, usize) {
        (self.0.as_ptr(), self.0.len())
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Address {}

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// Schemas by definition. The catalog shares the bytes of a definition, so that comparing their address is enough.
#[derive(Debug, Default)]
pub struct SchemaCache {
    by_address: RwLock<HashMap<Address, Arc<ToolSchemas>>>,
    uses: AtomicU64,
}

impl SchemaCache {
    /// Returns the schemas of a definition. `is_new` is true for the first caller, who reports what is wrong with them.
    pub fn schemas(&self, definition: &Bytes) -> SchemaLookup {
        let address = Address(definition.clone());
        let use_count = self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(known) = self.by_address.read().unpoisoned().get(&address) {
            known.used.store(use_count, Ordering::Relaxed);
            return SchemaLookup { schemas: Arc::clone(known), is_new: false };
        }
        // Compiled without the lock. Two callers at once compile twice, and one of the results is used.
        let schemas = Arc::new(ToolSchemas {
            input: DeclaredSchema::of(definition, "inputSchema"),
            output: DeclaredSchema::of(definition, "outputSchema"),
            meanings: meanings(definition),
            used: AtomicU64::new(use_count),
        });
        let mut map = self.by_address.write().unpoisoned();
        bounded::make_room(&mut map, MAX_DEFINITIONS, |one| one.used.load(Ordering::Relaxed));
        let is_new = map.insert(address, Arc::clone(&schemas)).is_none();
        SchemaLookup { schemas, is_new }
    }
}

/// Schemas that were looked up.
#[derive(Debug)]
pub struct SchemaLookup {
    /// The schemas of the tool.
    pub schemas: Arc<ToolSchemas>,
    /// True if they were compiled now.
    pub is_new: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_compiled_once_and_another_at_the_same_place_is_not_mistaken_for_it() {
        let cache = SchemaCache::default();
        let tool = |kind: &str| Bytes::from(format!(r#"{{"name":"a","inputSchema":{{"type":"{kind}"}}}}"#));
        let first = tool("array");
        assert!(cache.schemas(&first).is_new && !cache.schemas(&first.clone()).is_new);
        let address = first.as_ptr();
        drop(first);
        // The cache holds the bytes, so no other definition can take their place.
        for _ in 0..100 {
            assert_ne!(tool("array").as_ptr(), address);
        }
        let broken = cache.schemas(&tool("thing"));
        assert!(matches!(&broken.schemas.input, DeclaredSchema::Invalid(why) if !why.is_empty()));
        assert!(matches!(broken.schemas.output, DeclaredSchema::Any));
    }
}
