//! Configuration keys of recording and redaction.

use crate::key_parts::{SAMPLINGS, count, key, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

const DAY: f64 = 24.0 * 3600.0;
const MIB: u64 = 1024 * 1024;

/// Every key of `record`, in the order of the reference.
pub(crate) const RECORD_KEYS: &[ConfigKey] = &[
    key("record.enabled", KeyKind::Flag(true), "Record messages with every decision; see docs/recording.md."),
    key(
        "record.postgres",
        KeyKind::Text(""),
        "A PostgreSQL database to record into, with `sslmode` and `sslrootcert` as usual; without one, SQLite in the data folder.",
    ),
    key(
        "record.sampling",
        one_of(SAMPLINGS, "all"),
        "Calls that are kept: all, a share, about a number per second, every n-th, those that fail with their neighbours, slow ones, or the latest when something happens.",
    ),
    key("record.share", KeyKind::Fraction(1.0), "The share of calls kept by `sampling = \"share\"`."),
    key("record.seed", count(0, 0, u32::MAX as u64), "Sets which calls belong to the share."),
    key(
        "record.target",
        count(10, 1, 1_000_000),
        "About this many calls a second are kept by `sampling = \"adaptive\"`.",
    ),
    key("record.nth", count(10, 1, 1_000_000), "One call in this many is kept by `sampling = \"every_nth\"`."),
    key(
        "record.always_errors",
        KeyKind::Flag(true),
        "Keep failed calls, whatever `share`, `adaptive`, `every_nth` and `priority` leave out.",
    ),
    key(
        "record.slower_than",
        KeyKind::Seconds { default: None, max: DAY },
        "Calls that take this long are slow: kept by `sampling = \"slow\"` (there 1 s by default), and always by the others.",
    ),
    key(
        "record.priority",
        KeyKind::Tables,
        "Calls with a share of their own, each kind under `[[record.priority]]`; the first that matches counts, and all other calls follow `sampling`.",
    ),
    key("record.priority.methods", KeyKind::Texts, "For these methods; `*` stands for anything. By default for all."),
    key("record.priority.tools", KeyKind::Texts, "For these tools, prompts and resources. By default for all."),
    key("record.priority.share", KeyKind::Fraction(1.0), "The share of them that is kept."),
    key(
        "record.before",
        count(10, 0, 100_000),
        "Number of calls before a failed one that are kept by `sampling = \"errors\"`.",
    ),
    key(
        "record.after",
        count(10, 0, 100_000),
        "Number of calls that are kept after a failed one, or after a ring was written.",
    ),
    key("record.ring", count(1_000, 1, 100_000), "Number of the latest calls that `sampling = \"ring\"` holds."),
    key("record.ring_time", KeyKind::Seconds { default: None, max: DAY }, "Maximum age of calls in the ring."),
    key(
        "record.ring_verdicts",
        KeyKind::Texts,
        "Decisions that cause the ring to be written, such as `refuse` or `hold`.",
    ),
    key("record.bodies", KeyKind::Flag(true), "Keep messages; if false, only their metadata."),
    key("record.max_body", count(16 * MIB, 0, 1024 * MIB), "Maximum size of a message that is kept, in bytes."),
    key("record.methods", KeyKind::Texts, "Record only these methods; `*` stands for anything."),
    key("record.exclude_methods", KeyKind::Texts, "Never record these methods."),
    key("record.tools", KeyKind::Texts, "Record only calls of these tools, prompts and resources."),
    key("record.exclude_tools", KeyKind::Texts, "Never record calls of these tools, prompts and resources."),
    key("record.backends", KeyKind::Texts, "Record only calls of these backends."),
    key("record.exclude_backends", KeyKind::Texts, "Never record calls of these backends."),
    key("record.principals", KeyKind::Texts, "Record only calls on behalf of these principals."),
    key("record.exclude_principals", KeyKind::Texts, "Never record calls on behalf of these principals."),
    key(
        "record.on_full",
        one_of(&["gap", "wait"], "gap"),
        "Behaviour when calls arrive faster than they can be written: the tape has a counted gap, or calls wait.",
    ),
    key("record.wait", seconds(1.0, 60.0), "Maximum time that a call waits with `on_full = \"wait\"`."),
    key("record.queue", count(65_536, 16, 10_000_000), "Maximum number of facts that wait to be written."),
    key(
        "record.queue_bytes",
        count(64 * MIB, MIB, 16 * 1024 * MIB),
        "Maximum number of bytes of facts that wait to be written.",
    ),
    key(
        "record.durability",
        one_of(&["normal", "strict"], "normal"),
        "With `strict` an answer leaves only after its record is on disk.",
    ),
    key("record.readiness", KeyKind::Flag(false), "`/readyz` answers 503 while calls cannot be recorded."),
    key("record.max_age_days", count(30, 1, 3650), "Number of days after which entries are deleted."),
    key(
        "record.max_size",
        count(1024 * MIB, MIB, 1024 * 1024 * MIB),
        "Beyond this many bytes the oldest entries are deleted.",
    ),
    key(
        "record.max_tape_size",
        KeyKind::Bound { min: 65_536, max: 1024 * 1024 * MIB },
        "Beyond this many bytes of entries, uncompressed, a tape ends and the next one begins; by default one process records one tape. See docs/recording.md.",
    ),
    key(
        "record.max_tape_age",
        KeyKind::Seconds { default: None, max: 30.0 * DAY },
        "Time after its first call at which a tape ends and the next one begins, at least a minute; by default one process records one tape.",
    ),
    key(
        "record.baseline",
        KeyKind::Text(""),
        "A tape file (relative to this file), or the name of a recorded tape, with which calls are compared as they pass; see docs/replay.md.",
    ),
    key(
        "record.baseline_ignore",
        KeyKind::Texts,
        "Places that do not count when calls are compared with the baseline, such as `/result/**/timestamp` or `/params/arguments/id`.",
    ),
    key("record.baseline_tolerance", KeyKind::Fraction(0.0), "Difference from the baseline that numbers may have."),
    key("record.redact.enabled", KeyKind::Flag(true), "Redact secrets before anything is stored."),
    key(
        "record.redact.defaults",
        KeyKind::Flag(true),
        "Treat the usual names of secrets, and every known kind of credential, as secrets.",
    ),
    key("record.redact.keys", KeyKind::Texts, "Members with these names are secrets too, anywhere."),
    key(
        "record.redact.paths",
        KeyKind::Texts,
        "Values at these places are secrets: JSON pointers from the root of the message; `*` stands for any name or index.",
    ),
    key(
        "record.redact.patterns",
        KeyKind::Texts,
        "Text that matches these regular expressions is secret; with a group named `secret`, only that part.",
    ),
    key(
        "record.redact.action",
        one_of(&["replace", "remove", "hash", "mask", "encrypt"], "replace"),
        "Treatment of a secret. With `encrypt`, it can be read again with its key, by `tape show --key-file`.",
    ),
    key(
        "record.redact.key_file",
        KeyKind::Text(""),
        "A file with the key of `action = \"encrypt\"`: 32 bytes as 64 hex digits or base64. Relative to this file.",
    ),
    key("record.redact.key", KeyKind::Text(""), "The key itself, as `${VARIABLE}`, instead of a `key_file`."),
    key(
        "record.redact.key_id",
        KeyKind::Text(""),
        "The name of the key, stored with every secret; by default its fingerprint.",
    ),
    key("record.redact.visible", count(4, 0, 64), "Number of characters that `action = \"mask\"` leaves visible."),
];
