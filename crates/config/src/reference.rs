//! Prints the reference page of the configuration from the table that the parser uses.

use std::fmt::Write as _;

use super::keys::{ConfigKey, FOREIGN_KEYS, KEYS, KeyKind, KeyState};

/// Returns a Markdown table of every key with its type, default and meaning.
pub fn markdown() -> String {
    let mut page = String::from("| key | takes | default | meaning |\n|---|---|---|---|\n");
    for key in KEYS {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", key.path, takes(&key.kind), default(&key.kind), meaning(key));
    }
    let foreign: Vec<String> = FOREIGN_KEYS.iter().map(|key| format!("`{key}`")).collect();
    let _ = writeln!(
        page,
        "\nOf a server entry in a client's `mcpServers` or `servers` JSON file, these are read: {}, `type` and `enabled`.",
        foreign.join(", ")
    );
    page
}

fn takes(kind: &KeyKind) -> String {
    match kind {
        KeyKind::Choice { built, .. } => {
            let words: Vec<String> = built.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        other => other.expected(),
    }
}

fn default(kind: &KeyKind) -> String {
    match kind {
        KeyKind::Text("")
        | KeyKind::Choice { default: "", .. }
        | KeyKind::Bound { .. }
        | KeyKind::Seed
        | KeyKind::Table => String::new(),
        KeyKind::Text(text) | KeyKind::Choice { default: text, .. } => format!("`\"{text}\"`"),
        KeyKind::Flag(flag) => format!("`{flag}`"),
        KeyKind::Seconds { default, .. } => default.map_or(String::new(), |number| format!("`\"{number}s\"`")),
        KeyKind::Fraction(default) => format!("`{default}`"),
        KeyKind::Count { default, .. } => format!("`{default}`"),
        KeyKind::Texts | KeyKind::Addresses | KeyKind::Tables | KeyKind::Rules => "`[]`".to_owned(),
        KeyKind::TextTable => "`{}`".to_owned(),
    }
}

fn meaning(key: &ConfigKey) -> String {
    let later = match key.kind {
        KeyKind::Choice { later, .. } if !later.is_empty() => {
            format!(" Not in this version yet: {}.", super::error::list(later).replace(" or ", " and "))
        }
        _ => String::new(),
    };
    let state = match key.state {
        KeyState::Feature { name, .. } => &*format!(" Only in a build with the cargo feature `{name}`."),
        KeyState::Built => "",
    };
    format!("{}{later}{state}", key.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_row_of_four_cells() {
        let page = markdown();
        assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), KEYS.len());
        for row in page.lines().take_while(|line| line.starts_with('|')) {
            assert_eq!(row.matches('|').count(), 5, "{row}");
        }
    }

    #[test]
    fn rows() {
        let page = markdown();
        for row in [
            "| `mcp.protocol.transport.port` | a whole number from 0 to 65535 | `8080` | The port to listen on; 0 takes any free one. |",
            "| `mcp.protocol.transport.type` | `\"http\"`, `\"websocket\"`, `\"tcp\"` | `\"http\"` | Transport for clients. ",
            "| `gateway.drain` | a time such as \"30s\", from 0.001 to 3600 seconds | `\"10s\"` | Time that calls in flight have to finish when the gateway stops. |",
            "| `mcp.protocol.security.require_authentication` | `true` or `false` | `false` | Refuse callers that do not authenticate; see docs/authentication.md. |",
        ] {
            assert!(page.contains(row), "{row}");
        }
    }
}
