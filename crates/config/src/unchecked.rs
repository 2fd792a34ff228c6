//! Reads parts of a file for `doctor`, even if the file as a whole cannot be used.

use super::import::{looks_secret, variable};
use super::raw::{Node, RawEntry, Value, parse_toml};

/// Secret that stands in a file in plain text.
#[derive(Debug, PartialEq, Eq)]
pub struct InTheClear {
    /// Path of its key.
    pub key: String,
    /// Environment variable that could hold it.
    pub variable: String,
}

/// Finds values under `env` and `headers` that look like secrets in plain text. A file that cannot be parsed has none;
/// the loader reports the error.
#[must_use]
pub fn secrets(text: &str) -> Vec<InTheClear> {
    let mut found = Vec::new();
    if let Ok(root) = parse(text) {
        for list in ["backends", "mcpServers", "servers"] {
            for backend in entries(child(entries(&root), list)) {
                for table in ["env", "headers"] {
                    for entry in entries(child(entries(&backend.node), table)) {
                        found.extend(in_the_clear(list, &backend.key, table, entry));
                    }
                }
            }
        }
    }
    found
}

fn parse(text: &str) -> Result<Node, ()> {
    if text.trim_start().starts_with('{') {
        return super::parse_json(text).ok_or(());
    }
    parse_toml(text).map_err(drop)
}

fn entries(node: &Node) -> &[RawEntry] {
    match &node.value {
        Value::Table(entries) => entries,
        _ => &[],
    }
}

fn child<'a>(entries: &'a [RawEntry], key: &str) -> &'a Node {
    const NOTHING: &Node = &Node { value: Value::Null, at: 0 };
    entries.iter().find(|entry| entry.key == key).map_or(NOTHING, |entry| &entry.node)
}

fn in_the_clear(list: &str, backend: &str, table: &str, entry: &RawEntry) -> Option<InTheClear> {
    let Value::Text(value) = &entry.node.value else { return None };
    if value.contains("${") || !looks_secret(&entry.key, value) {
        return None;
    }
    let variable = if table == "env" { entry.key.clone() } else { variable(&format!("{backend}_{}", entry.key)) };
    Some(InTheClear { key: format!("{list}.{backend}.{table}.{}", entry.key), variable })
}

/// Returns the certificate files of the listener as the file names them, even if it cannot be used otherwise.
#[must_use]
pub fn tls_files(text: &str) -> TlsFiles {
    let Ok(root) = parse(text) else { return TlsFiles::default() };
    let mut node = &root;
    for key in ["mcp", "protocol", "transport", "tls"] {
        node = child(entries(node), key);
    }
    let file = |key: &str| match &child(entries(node), key).value {
        Value::Text(path) if !path.is_empty() => Some(path.clone()),
        _ => None,
    };
    TlsFiles { certificate: file("cert_file"), key: file("key_file"), authorities: file("ca_file") }
}

/// Files of the listener's TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate shown to clients.
    pub certificate: Option<String>,
    /// Private key of the certificate.
    pub key: Option<String>,
    /// Authorities that sign the certificates of clients.
    pub authorities: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_both_kinds_of_file_and_references_are_not() {
        let toml = "[backends.a.env]\nAPI_KEY = 'x'\nHOME = '/h'\nTOKEN = '${TOKEN}'\n[backends.b.headers]\nAuthorization = 'Bearer x'\n";
        let found: Vec<_> = secrets(toml).into_iter().map(|one| (one.key, one.variable)).collect();
        let expected = [("backends.a.env.API_KEY", "API_KEY"), ("backends.b.headers.Authorization", "B_AUTHORIZATION")];
        assert_eq!(found, expected.map(|(key, variable)| (key.to_owned(), variable.to_owned())));
        let json = r#"{"mcpServers": {"a": {"command": "x", "env": {"GH_TOKEN": "ghp_x"}}}}"#;
        assert_eq!(secrets(json)[0].key, "mcpServers.a.env.GH_TOKEN");
        assert!(secrets("not toml").is_empty());
    }

    #[test]
    fn the_files_of_tls_are_found_even_where_the_rest_is_wrong() {
        let text = "[mcp.protocol.transport.tls]\nenabled = true\ncert_file = 'c'\nca_file = ''\n[nonsense]\n";
        assert_eq!(tls_files(text), TlsFiles { certificate: Some("c".to_owned()), ..TlsFiles::default() });
    }
}
