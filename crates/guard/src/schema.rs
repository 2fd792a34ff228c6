//! Validates the arguments and results of tools against the JSON Schemas that servers declare.
//!
//! Both the schema and the instance come from strangers, so every step has a bound in [`limits`]. A schema beyond a
//! bound does not compile. A check that could take too long is not begun: its verdict is [`SchemaValidity::TooCostly`].
//! The `jsonschema` crate gives the verdict, with a linear regex engine and without any way to fetch a reference. This
//! module bounds its work beforehand ([`cost`], [`meter`]) and explains a verdict afterwards ([`explanation`]), because
//! the errors of the crate copy the instance once per branch.
//!
//! `format`, `contentEncoding` and `contentMediaType` are annotations here, as in 2020-12 by default: a wrong guess
//! about a date would refuse a call that the server understands.
//!
//! Numbers are compared as 64-bit integers or as doubles. An integer of 20 digits is an integer, but bounds beyond 2^53
//! are only as exact as a double. A number beyond the range of a double counts as ±1e308.

mod assertions;
mod census;
mod coercion;
mod compiled_schema;
mod cost;
mod description;
mod explanation;
mod graph;
mod graph_builder;
mod invalid_schema;
mod json_text;
mod json_types;
pub mod limits;
mod meter;
mod pattern;
mod schema_draft;
mod schema_node;
mod schema_validity;
mod secret_name;

pub use compiled_schema::Schema;
pub use invalid_schema::InvalidSchema;
pub use schema_draft::SchemaDraft;
pub use schema_validity::{Coercion, SchemaValidity, SchemaViolation};
