//! Every revision meets every other: what is tried, what must come of it, and what came of it.
//!
//! A cell is one client revision, one server revision and the two transports between them and the gateway. In each cell
//! every [`Feature`] is tried with the strict parts of [`crate::revision_client`] and [`crate::revision_server`].

mod cell;
mod feature;
mod journal;
mod measure;
mod page;
mod places;
mod plan;

pub use cell::{CellVerdict, MatrixCell, try_all};
pub use feature::Feature;
pub use feature::{Expected, expected};
pub use journal::Journal;
pub use page::page;
pub use places::backend;
pub use places::{BackTransport, FrontTransport};
pub use plan::{Measured, cells, run};
