//! Translation of a legacy call to MCP, for developers who migrate a client.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Legacy call as parsed from `curl` or JSON.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LegacyCall {
    /// HTTP method; empty if not given.
    pub method: String,
    pub url: String,
    pub body: Option<String>,
}

/// Reason why a call cannot be translated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MigrateError {
    /// There is no URL.
    #[error("no address is given; write it as curl takes it, like `-d '{{…}}' https://host/api/request`")]
    NoUrl,
    /// An option lacks its value.
    #[error("`{0}` needs a value")]
    NoValue(String),
    /// The URL is not a legacy route.
    #[error(
        "`{0}` is not a legacy route: those are /api/sessions, /api/metadata, /api/request, /api/response and /api/stream"
    )]
    NotLegacy(String),
    /// The body cannot be parsed.
    #[error("the body is not a JSON object: {0}")]
    Body(String),
    /// The call names no tool.
    #[error("the body has no `tool`")]
    NoTool,
}

/// Flavor of MCP to translate to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TargetFlavor {
    /// With sessions: revision 2025-11-25 and older.
    Sessions,
    /// Without sessions: revision 2026-07-28.
    Stateless,
}

impl LegacyCall {
    /// Parses the arguments of a `curl` command.
    ///
    /// # Errors
    /// If they contain no URL.
    pub fn of_curl(args: impl IntoIterator<Item = String>) -> Result<Self, MigrateError> {
        let mut call = Self::default();
        let mut args = args.into_iter().skip_while(|word| word == "curl");
        while let Some(word) = args.next() {
            let (name, joined) = match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word.clone(), None),
            };
            let mut value =
                || joined.clone().or_else(|| args.next()).ok_or_else(|| MigrateError::NoValue(name.clone()));
            match name.as_str() {
                "-X" | "--request" => call.method = value()?,
                "-d" | "--data" | "--data-raw" | "--data-binary" | "--json" => call.body = Some(value()?),
                "-H" | "--header" | "-A" | "--user-agent" | "-o" | "--output" | "-m" | "--max-time" => drop(value()?),
                "--url" => call.url = value()?,
                option if option.starts_with('-') => {}
                _ => call.url = word,
            }
        }
        if call.url.is_empty() { Err(MigrateError::NoUrl) } else { Ok(call) }
    }

    /// Parses a call in JSON: `{"method": …, "url": …, "body": {…}}`.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn of_json(text: &str) -> Result<Self, MigrateError> {
        let value: Value = serde_json::from_str(text).map_err(|error| MigrateError::Body(error.to_string()))?;
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let url = if value["url"].is_string() { text("url") } else { text("path") };
        if url.is_empty() {
            return Err(MigrateError::NoUrl);
        }
        let body = match &value["body"] {
            Value::Null => None,
            Value::String(body) => Some(body.clone()),
            body => Some(body.to_string()),
        };
        Ok(Self { method: text("method"), url, body })
    }

    /// Describes what an MCP client sends instead.
    ///
    /// # Errors
    /// If it is not a legacy call.
    pub fn to_mcp(&self, style: TargetFlavor) -> Result<String, MigrateError> {
        let (base, path, query) = split(&self.url);
        let body = self.read_body()?;
        let code = ["sessionCode", "code"].iter().find_map(|name| {
            let in_body = body.get(*name).and_then(Value::as_str).map(str::to_owned);
            in_body.or_else(|| parameter(query, name))
        });
        let mut out = Translation { text: String::new(), base, code, style };
        match path {
            "/api/sessions" => match style {
                TargetFlavor::Sessions => {
                    out.message("a session, whose id comes in the header Mcp-Session-Id", &initialize())
                }
                TargetFlavor::Stateless => {
                    out.say("There are no sessions in 2026-07-28: each call names the page by `sessionCode`.")
                }
            },
            "/api/metadata" => {
                out.message("the tools; `parameters` is called `inputSchema`", &out.request("tools/list", json!({})));
            }
            "/api/request" => {
                let tool = body.get("tool").and_then(Value::as_str).ok_or(MigrateError::NoTool)?;
                let arguments = ["arguments", "args"].iter().find_map(|name| body.get(*name)).cloned();
                out.connect();
                let params = out.named(json!({"name": tool, "arguments": arguments.unwrap_or_else(|| json!({}))}));
                out.message("the call; its answer is the result", &out.request("tools/call", params));
            }
            "/api/stream" => out.say("The result of a call is the answer to `tools/call`: no stream is needed."),
            "/api/response" => out.say("This is the page's side, which stays as it is: see /relay/worker.js."),
            other => return Err(MigrateError::NotLegacy(other.to_owned())),
        }
        Ok(out.text)
    }

    fn read_body(&self) -> Result<Map<String, Value>, MigrateError> {
        match self.body.as_deref().map(str::trim).filter(|body| !body.is_empty()) {
            None => Ok(Map::new()),
            Some(text) => serde_json::from_str(text).map_err(|error| MigrateError::Body(error.to_string())),
        }
    }
}

struct Translation<'a> {
    text: String,
    base: &'a str,
    code: Option<String>,
    style: TargetFlavor,
}

impl Translation<'_> {
    fn say(&mut self, words: &str) {
        let _ = writeln!(self.text, "# {words}");
    }

    fn connect(&mut self) {
        if let (TargetFlavor::Sessions, Some(code)) = (self.style, self.code.clone()) {
            let params = json!({"name": "connect_to_session", "arguments": {"sessionId": code}});
            let message = self.request("tools/call", params);
            self.message("once in a session: which page is meant", &message);
            self.text.push('\n');
        }
    }

    /// Adds the session code to the parameters of a call in the stateless style, where every call names its page.
    fn named(&self, mut params: Value) -> Value {
        if let (TargetFlavor::Stateless, Some(code)) = (self.style, &self.code) {
            params["arguments"]["sessionCode"] = code.as_str().into();
        }
        params
    }

    fn request(&self, method: &str, mut params: Value) -> Value {
        if self.style == TargetFlavor::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
        if params.as_object().is_some_and(|params| !params.is_empty()) {
            message["params"] = params;
        }
        message
    }

    fn message(&mut self, words: &str, message: &Value) {
        self.say(words);
        let _ = write!(self.text, "POST {}/api/mcp\nContent-Type: application/json\n", self.base);
        let method = message["method"].as_str().unwrap_or_default();
        match self.style {
            TargetFlavor::Sessions if method != "initialize" => {
                self.text.push_str("Mcp-Session-Id: (the id that initialize gave)\n")
            }
            TargetFlavor::Sessions => {}
            TargetFlavor::Stateless => {
                let _ = write!(self.text, "MCP-Protocol-Version: 2026-07-28\nMcp-Method: {method}\n");
                if let Some(name) = message["params"]["name"].as_str() {
                    let _ = writeln!(self.text, "Mcp-Name: {name}");
                }
            }
        }
        let _ = write!(self.text, "\n{message}\n");
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "my-client", "version": "1.0.0"}}})
}

/// Splits a URL into base, path and query.
fn split(url: &str) -> (&str, &str, &str) {
    let start = url.find("://").map_or(0, |scheme| scheme + 3);
    let path = url[start..].find('/').map_or(url.len(), |slash| start + slash);
    let path = if start == 0 && url.starts_with('/') { 0 } else { path };
    let (base, rest) = url.split_at(path);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    (base, path.strip_suffix('/').unwrap_or(path), query)
}

fn parameter(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curl(words: &[&str], style: TargetFlavor) -> Result<String, MigrateError> {
        LegacyCall::of_curl(words.iter().map(|word| (*word).to_owned()))?.to_mcp(style)
    }

    #[test]
    fn a_call_becomes_a_tools_call() {
        let body = r#"{"sessionCode":"ABC123XY","tool":"createDataContext","arguments":{"name":"StudentData"}}"#;
        let words = [
            "curl",
            "-sS",
            "-X",
            "POST",
            "-H",
            "Content-Type: application/json",
            "-d",
            body,
            "https://box.example/api/request",
        ];
        let told = curl(&words, TargetFlavor::Sessions).unwrap();
        let expected = "# once in a session: which page is meant\nPOST https://box.example/api/mcp\nContent-Type: application/json\n\
            Mcp-Session-Id: (the id that initialize gave)\n\n\
            {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"connect_to_session\",\"arguments\":{\"sessionId\":\"ABC123XY\"}}}\n\n\
            # the call; its answer is the result\nPOST https://box.example/api/mcp\nContent-Type: application/json\n\
            Mcp-Session-Id: (the id that initialize gave)\n\n\
            {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"createDataContext\",\"arguments\":{\"name\":\"StudentData\"}}}\n";
        assert_eq!(told, expected);
        let stateless = curl(&words, TargetFlavor::Stateless).unwrap();
        assert!(stateless.contains(r#""arguments":{"name":"StudentData","sessionCode":"ABC123XY"}"#), "{stateless}");
        assert!(stateless.contains("Mcp-Name: createDataContext\n"));
        let json = r#"{"method":"GET","path":"/api/metadata?sessionCode=ABC123XY"}"#;
        let listed = LegacyCall::of_json(json).unwrap().to_mcp(TargetFlavor::Sessions).unwrap();
        assert!(listed.ends_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n"), "{listed}");
    }

    #[test]
    fn what_is_no_legacy_call_is_told() {
        assert_eq!(curl(&["-X", "POST"], TargetFlavor::Sessions), Err(MigrateError::NoUrl));
        assert_eq!(curl(&["/api/request", "-d"], TargetFlavor::Sessions), Err(MigrateError::NoValue("-d".to_owned())));
        assert_eq!(curl(&["/api/request", "-d", "{}"], TargetFlavor::Sessions), Err(MigrateError::NoTool));
        assert_eq!(curl(&["http://h/x"], TargetFlavor::Sessions), Err(MigrateError::NotLegacy("/x".to_owned())));
        assert!(matches!(curl(&["/api/request", "--data=["], TargetFlavor::Sessions), Err(MigrateError::Body(_))));
        assert!(curl(&["http://h/api/stream?code=A"], TargetFlavor::Sessions).unwrap().starts_with("# The result"));
        assert!(curl(&["http://h/api/sessions"], TargetFlavor::Sessions).unwrap().contains("\"initialize\""));
    }
}
