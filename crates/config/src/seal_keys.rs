//! Configuration keys of sealing.

use crate::key_parts::{count, key, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

/// Every key of `seal`, in the order of the reference.
pub(crate) const SEAL_KEYS: &[ConfigKey] = &[
    key(
        "seal.tapes",
        KeyKind::Flag(true),
        "Seal recorded tapes: a chain of hashes over all entries, signed with the key in the data folder; see docs/seal.md.",
    ),
    key(
        "seal.commit",
        KeyKind::Texts,
        "Members of messages below which every value is sealed by itself, so that `tape redact` can remove it and the rest can still be verified. By default `params.arguments` and `result`.",
    ),
    key("seal.head_every", count(1_000, 1, 1_000_000), "The seal of a tape is signed after this many entries."),
    key(
        "seal.head_interval",
        seconds(10.0, 24.0 * 3600.0),
        "The seal of a tape is signed at least this often while entries arrive.",
    ),
    key(
        "seal.anchor",
        KeyKind::Texts,
        "Further places that keep signed heads of tapes, out of reach of anyone who can change the tapes: files (relative to this one), and addresses that take them by POST, such as `https://HOST:PORT/anchors` of another gateway.",
    ),
    key(
        "seal.require",
        KeyKind::Texts,
        "Requests that must be signed, as patterns `BACKEND` or `BACKEND/NAME` of tools, prompts and resources; others may be. `*` and `?` are wildcards.",
    ),
    key(
        "seal.profiles",
        KeyKind::Texts,
        "Canonical forms in which signed requests are accepted: `mcp-cbor/2`, `mcp-cbor/1`. By default `mcp-cbor/2` alone, because in `mcp-cbor/1` different messages can have the same signature (`1.5` and `\"1.50000000\"`).",
    ),
    key(
        "seal.validate",
        one_of(&["light", "full"], "light"),
        "Checks of a signed request: time, trust, nonce and expiry, or in `full` also a purpose and permissions that fit, which only protobuf carries.",
    ),
    key(
        "seal.sign_answers",
        KeyKind::Flag(false),
        "Sign every answer with the key in the data folder. Answers to signed requests are signed in any case.",
    ),
    key(
        "seal.time_window",
        seconds(300.0, 24.0 * 3600.0),
        "Maximum difference between the time of a signed request and ours; behind ours, `max_age` may allow more.",
    ),
    key(
        "seal.max_age",
        seconds(24.0 * 3600.0, 24.0 * 3600.0),
        "Maximum age of a signed request; without this key `time_window`, and 24 h with `validate = \"full\"`.",
    ),
    key(
        "seal.nonces_per_key",
        count(100_000, 10, 10_000_000),
        "Number of recent requests of one key that are remembered, so that none is accepted twice. While this number is reached, the key's requests are refused.",
    ),
];
