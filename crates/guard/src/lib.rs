//! Looks at what is said in calls of tools, while `govern` decides who may call them.
//!
//! ```text
//! client ── arguments ──► schema ─► filters ──────────────────► backend
//! client ◄─ what is left ─ cleaning, orders ◄─ output schema ◄─ backend
//! client ◄─ lists ──────── cleaning, orders ◄────────────────── backend
//! ```
//!
//! Arguments are held against the schema that the tool declares, then against filters for the attacks that their
//! meaning allows. Results, errors, notifications, questions and definitions are searched for what hides or acts, such
//! as escape sequences and invisible characters, and for texts that tell the model what to do. `privacy` finds private
//! data in a text and replaces it by placeholders.
//!
//! Two modules look at data that leaves: `flows` recognises in the arguments of one tool what another tool returned,
//! and `canary` recognises values that were laid out to be found.
//!
//! Everything here comes from strangers. Schemas are compiled once, within bounds on their size and on the work of
//! applying them, and can refer to nothing outside themselves. All searches take linear time.

mod argument_check;
pub mod argument_filters;
pub mod canary;
mod canary_check;
pub mod cleaning;
mod content;
mod content_check;
mod content_search;
mod content_settings;
mod definition_check;
mod encoded_text;
mod encodings;
mod escaped_text;
mod explanation;
mod filter_check;
mod filter_settings;
mod flow_check;
pub mod flows;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod guard;
pub mod instructions;
mod invisible;
mod mark;
mod message_text;
mod message_trial;
pub mod pins;
mod prepared_work;
pub mod privacy;
mod question_check;
mod result_check;
pub mod schema;
mod settings;
mod text_report;
mod tool_names;
mod tool_schemas;

pub use content_settings::{ByContent, CleanMode, ContentClass, InstructionMode, PrivacyModes};
pub use definition_check::{DefinitionAction, DefinitionFinding, InspectedLists};
pub use encodings::{EncodingLayers, TextEncoding};
pub use filter_settings::{ArgumentFilter, FilterAction, FilterActions};
pub use guard::{Guard, GuardSecrets};
pub use message_trial::TrialFinding;
pub use settings::{FlowRule, GuardLevel, GuardSettings, SchemaMode, ToolSettings};
pub use text_report::TextFinding;
