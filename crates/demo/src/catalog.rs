//! Definitions of the demo tools.

use serde_json::{Value, json};
use signalbox_embedded::read_only;

use super::countdown;
use super::directory;
use super::echo;
use super::entry::Kind;
use super::root::MAX_PATH;

/// Characters allowed in a path.
const PATH_PATTERN: &str = "^[a-zA-Z0-9/_.-]+$";
const DRAFT_07: &str = "http://json-schema.org/draft-07/schema#";
const META_TOOL: &str = "signalbox/tool";

/// Returns the definitions of all tools in list order.
pub(super) fn tools() -> Vec<Value> {
    vec![countdown_tool(), directory_tool(), echo_tool()]
}

fn directory_tool() -> Value {
    json!({
        "name": "directory_list",
        "title": "List a directory",
        "description": "Shows what a folder contains: names, types, sizes, permissions, owners and times. Paths are \
            relative to the demo's root folder, `.` being the folder itself; nothing outside it can be seen, and \
            symbolic links are shown but never followed. With `recursive` the folders below are listed too. Can \
            also be called as `ls`.",
        "inputSchema": directory_input(),
        "outputSchema": directory_output(),
        "annotations": read_only("List a directory"),
        "_meta": {META_TOOL: about(&["filesystem", "utility", "navigation"], &["ls"])},
    })
}

fn directory_input() -> Value {
    json!({
        "$schema": DRAFT_07,
        "type": "object",
        "additionalProperties": false,
        "required": ["path"],
        "properties": {
            "path": {
                "type": "string",
                "description": "The folder to list, such as `.` or `./src`.",
                "pattern": PATH_PATTERN,
                "maxLength": MAX_PATH,
            },
            "recursive": {
                "type": "boolean",
                "description": "List the folders below as well.",
                "default": false,
            },
            "max_depth": {
                "type": "integer",
                "description": "Levels to list when recursive; 1 is the folder alone.",
                "minimum": 1,
                "maximum": directory::MAX_DEPTH,
                "default": directory::DEFAULT_DEPTH,
            },
            "include_hidden": {
                "type": "boolean",
                "description": "Show names that begin with a dot.",
                "default": false,
            },
            "filter": filter_schema(),
            "sort": sort_schema(),
            "limit": {
                "type": "integer",
                "description": "Most entries to return, counted after filtering and sorting.",
                "minimum": directory::LIMIT.start(),
                "maximum": directory::LIMIT.end(),
                "default": directory::DEFAULT_LIMIT,
            },
        },
    })
}

fn filter_schema() -> Value {
    json!({
        "type": "object",
        "description": "Which entries to keep. Folders are searched even if they are not kept themselves.",
        "additionalProperties": false,
        "properties": {
            "pattern": {
                "type": "string",
                "description": "What the name must look like: `*` is any text, `?` any one character.",
                "maxLength": directory::MAX_PATTERN,
            },
            "file_types": {
                "type": "array",
                "description": "Types to keep; an empty list keeps all.",
                "items": {"type": "string", "enum": kinds()},
            },
            "size_range": {
                "type": "object",
                "description": "Sizes to keep, in bytes, both ends included.",
                "additionalProperties": false,
                "properties": {
                    "min": {"type": "integer", "minimum": 0},
                    "max": {"type": "integer", "minimum": 0},
                },
            },
        },
    })
}

fn sort_schema() -> Value {
    json!({
        "type": "object",
        "description": "The order of the entries; equal ones are ordered by path.",
        "additionalProperties": false,
        "properties": {
            "by": {"type": "string", "enum": ["name", "size", "modified", "type"], "default": "name"},
            "order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
        },
    })
}

fn directory_output() -> Value {
    json!({
        "$schema": DRAFT_07,
        "type": "object",
        "required": ["path", "entries", "metadata"],
        "properties": {
            "path": {"type": "string", "description": "The folder as it was asked for."},
            "entries": {"type": "array", "items": entry_schema()},
            "metadata": {
                "type": "object",
                "required": ["total_entries", "filtered_entries", "execution_time", "truncated"],
                "properties": {
                    "total_entries": {"type": "integer", "minimum": 0, "description": "Entries seen."},
                    "filtered_entries": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Entries that the filter kept, whether or not the limit let them through.",
                    },
                    "execution_time": {"type": "number", "minimum": 0, "description": "Seconds."},
                    "truncated": {"type": "boolean", "description": "Whether there was more than is shown."},
                },
            },
        },
    })
}

fn entry_schema() -> Value {
    json!({
        "type": "object",
        "required": [
            "name", "path", "type", "size", "permissions", "modified", "owner", "group", "accessed",
        ],
        "properties": {
            "name": {"type": "string"},
            "path": {"type": "string", "description": "Begins as the requested path begins."},
            "type": {"type": "string", "enum": kinds()},
            "size": {"type": "integer", "minimum": 0, "description": "Bytes."},
            "permissions": {"type": "string", "description": "Nine letters, such as rw-r--r--."},
            "modified": {"type": "string", "format": "date-time"},
            "owner": {"type": "string", "description": "A name, or a number if it has none."},
            "group": {"type": "string", "description": "A name, or a number if it has none."},
            "accessed": {"type": "string", "format": "date-time"},
            "symlink_target": {"type": "string", "description": "What a symbolic link says; links only."},
        },
    })
}

fn echo_tool() -> Value {
    json!({
        "name": "echo",
        "title": "Echo",
        "description": "Sends the given text back unchanged. Good for checking that calls arrive and return.",
        "inputSchema": {
            "$schema": DRAFT_07,
            "type": "object",
            "additionalProperties": false,
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "description": "What to send back.", "maxLength": echo::MAX_TEXT},
            },
        },
        "annotations": read_only("Echo"),
        "_meta": {META_TOOL: about(&["utility"], &[])},
    })
}

fn countdown_tool() -> Value {
    json!({
        "name": "countdown",
        "title": "Count down",
        "description": "Counts down to zero, waiting before each step, and returns when it gets there. Reports \
            progress to callers that ask for it and stops when cancelled, so both can be tried out.",
        "inputSchema": {
            "$schema": DRAFT_07,
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "from": {
                    "type": "integer",
                    "description": "How many steps to take.",
                    "minimum": countdown::FROM.start(),
                    "maximum": countdown::FROM.end(),
                    "default": countdown::DEFAULT_FROM,
                },
                "interval_ms": {
                    "type": "integer",
                    "description": "How long each step takes, in milliseconds.",
                    "minimum": countdown::INTERVAL_MS.start(),
                    "maximum": countdown::INTERVAL_MS.end(),
                    "default": countdown::DEFAULT_INTERVAL_MS,
                },
            },
        },
        "annotations": read_only("Count down"),
        "_meta": {META_TOOL: about(&["utility"], &[])},
    })
}

fn kinds() -> [&'static str; 6] {
    Kind::WORDS.map(|(word, _)| word)
}

/// Builds the metadata for the gateway's tool registry.
fn about(categories: &[&str], aliases: &[&str]) -> Value {
    json!({"version": "1.0.0", "categories": categories, "trust_level": "verified", "aliases": aliases})
}
