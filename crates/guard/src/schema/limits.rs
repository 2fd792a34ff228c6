//! Bounds on schemas, instances and the work of a check.

/// Maximum length of the text of a schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Maximum number of JSON values in a schema, which also bounds the values of `enum`.
pub const MAX_SCHEMA_NODES: usize = 20_000;
/// Maximum nesting of JSON containers in a schema.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// Maximum number of `pattern`s and of names under `patternProperties`.
pub const MAX_PATTERNS: usize = 200;
/// Maximum length of all patterns together, in bytes.
pub const MAX_PATTERN_BYTES: usize = 32 * 1024;
/// Maximum size of one compiled pattern, in bytes as the regex engine counts them.
pub const MAX_COMPILED_PATTERN: usize = 256 * 1024;
/// Maximum number of states of all compiled patterns together.
pub const MAX_PATTERN_STATES: usize = 50_000;
/// Maximum capacity of the transition cache of one pattern, in bytes.
pub const PATTERN_CACHE: usize = 256 * 1024;
/// Maximum number of compilations of subschemas that embedded `$id`s could cause, see `census`.
pub const MAX_SCOPED_NODES: u64 = 200_000;
/// Maximum work for one value if all references to it were expanded, in units of [`MAX_WORK`].
pub const MAX_EXPANDED_REFERENCES: u64 = 100_000;
/// Maximum length of a chain of subschemas that apply to the same value (`$ref`, `allOf`, `not` …).
pub const MAX_CHAIN: u32 = 128;
/// Number of nested reference targets that the validator compiles on its stack; further ones are queued.
pub const NESTED_REFERENCES: usize = 8;
/// Maximum number of subschemas that are on the stack while the schema compiles.
pub const MAX_COMPILE_STACK: u32 = 200;
/// Maximum length of a chain of subschemas through an instance, which bounds the stack of a check.
pub const MAX_STACK: u32 = 1_024;

/// Maximum length of an instance, in bytes.
pub const MAX_INSTANCE_BYTES: usize = 8 << 20;
/// Maximum number of JSON values and names in an instance, which bounds its memory.
pub const MAX_INSTANCE_NODES: usize = 100_000;
/// Maximum work of a check. One unit is about one keyword applied to one value, tens of nanoseconds.
pub const MAX_WORK: u64 = 1_000_000;
/// Maximum number of steps to measure the work for one instance.
pub const MAX_METERING: u64 = 250_000;
/// Maximum number of steps to explain an invalid instance. Beyond it, the explanation is incomplete.
pub const MAX_EXPLANATION: u64 = 30_000;

/// Maximum number of violations per verdict.
pub const MAX_VIOLATIONS: usize = 5;
/// Maximum length of a displayed violation, in characters.
pub const MAX_VIOLATION_CHARS: usize = 200;
/// Maximum length of a quoted value, in characters.
pub const MAX_QUOTED_CHARS: usize = 60;
/// Maximum number of values that one check may coerce.
pub const MAX_COERCIONS: usize = 64;
/// Maximum number of values in JSON text that is coerced.
pub const MAX_COERCED_NODES: usize = 10_000;
/// Rounds of coercion: JSON text in a string may hold further values to coerce.
pub const MAX_COERCION_ROUNDS: usize = 3;
