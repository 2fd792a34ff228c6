//! Approved tool definitions and what changed since their approval.
//!
//! A server may change a definition after it was reviewed, give a reviewed schema a new name, or list a tool whose name
//! resembles another one. A [`LockFile`] records the approved definitions, [`compare`] judges a listing against them,
//! and [`diff`] shows a reviewer what changed.

mod canonical_number;
mod canonical_value;
mod definition_diff;
mod lock_error;
mod lock_file;
mod lock_text;
mod look_alikes;
mod pin_check;
mod tool_change;
mod tool_definition;

pub use definition_diff::{DiffKind, DiffLine, MAX_DIFF_LINES, diff};
pub use lock_error::{LockError, LockFault};
pub use lock_file::{
    Approval, ApprovedDefinition, ApprovedInstructions, BackendPins, LockFile, MAX_KEPT_TEXT, MAX_LOCK_FILE, StoredText,
};
pub(crate) use pin_check::{ListedTool, PinCheck, PinVerdicts};
pub use pin_check::{PinAction, PinFinding, PinMode, PinModes, PinnedBackend};
pub use tool_change::{InstructionsChange, PinChange, ReservedNames, ToolChange, compare, compare_instructions};
pub use tool_definition::{
    DefinitionError, DefinitionHash, MAX_DEFINITION, ToolDefinition, UnknownHash, hash_instructions, hash_shape,
    hash_tool,
};
