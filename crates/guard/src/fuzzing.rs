//! Bodies of the fuzz targets: each takes arbitrary bytes and asserts what must hold for all of them.
//!
//! They are part of the crate so that the ordinary tests run them too, over mutated seeds.

mod flows;
#[cfg(test)]
mod random_inputs;
mod schema;
mod texts;

pub use flows::flows;
pub use schema::schema;
pub use texts::guard_texts;
