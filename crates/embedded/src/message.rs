//! JSON-RPC messages of in-process servers.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

/// The message is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is JSON, but not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// The method is not supported.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The method exists, but its parameters are invalid.
pub const INVALID_PARAMS: i32 = -32602;
/// Internal error of the server.
pub const INTERNAL_ERROR: i32 = -32603;
/// The request names a protocol version that is not served statelessly.
pub const UNSUPPORTED_VERSION: i32 = -32022;
/// Too many concurrent calls. The gateway's own application code for "limited".
pub const LIMITED: i32 = 4290;

/// Request id. `1` and `"1"` are different ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    Number(Number),
    Text(String),
}

impl Id {
    /// Parses an id. Returns `None` for anything but a string or an integer.
    pub fn from_value(value: &Value) -> Option<Id> {
        match value {
            Value::String(text) => Some(Id::Text(text.clone())),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(Id::Number(number.clone())),
            _ => None,
        }
    }
}

/// JSON-RPC error without its id.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Error code for programs.
    pub code: i32,
    /// Error message for people.
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without details.
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// Adds `data` to the error.
    pub fn with_data(self, data: Value) -> RpcError {
        RpcError { data: Some(data), ..self }
    }

    /// Builds the error message. Omits the id if it could not be read, as the schemas since 2025-11-25 require.
    pub fn into_bytes(self, id: Option<&Id>) -> Bytes {
        let mut error = Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.message.into());
        if let Some(data) = self.data {
            error.insert("data".into(), data);
        }
        let mut message = Map::new();
        message.insert("jsonrpc".into(), "2.0".into());
        if let Some(id) = id {
            message.insert("id".into(), json!(id));
        }
        message.insert("error".into(), Value::Object(error));
        encode(&Value::Object(message))
    }
}

/// Request with a usable id and object parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: Id,
    pub method: String,
    /// Parameters, empty if absent.
    pub params: Map<String, Value>,
}

impl Request {
    /// Returns the request's `_meta`, if it is an object.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.params.get("_meta").and_then(Value::as_object)
    }
}

/// Incoming message after parsing.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request(Request),
    /// Cancellation of the request with this id.
    Cancelled(Id),
    /// Notification without effect here, or an answer to a request that was never sent.
    Nothing,
    /// Invalid message, to be answered with this error.
    Broken(Option<Id>, RpcError),
}

/// Parses and classifies an incoming message.
pub fn parse(bytes: &[u8]) -> Incoming {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return Incoming::Broken(None, RpcError::new(PARSE_ERROR, "The message is not valid JSON."));
    };
    let Value::Object(mut message) = value else {
        let text = "A message is one JSON object; batches are split before they get here.";
        return Incoming::Broken(None, RpcError::new(INVALID_REQUEST, text));
    };
    match (message.remove("method"), message.remove("id")) {
        (Some(Value::String(method)), None) => notification(&method, &message),
        (Some(Value::String(method)), Some(id)) => request(method, &id, message),
        (None, _) if message.contains_key("result") || message.contains_key("error") => Incoming::Nothing,
        (_, id) => {
            let id = id.as_ref().and_then(Id::from_value);
            let text = "A request needs a `method` that is a string.";
            Incoming::Broken(id, RpcError::new(INVALID_REQUEST, text))
        }
    }
}

fn notification(method: &str, message: &Map<String, Value>) -> Incoming {
    if method != "notifications/cancelled" {
        return Incoming::Nothing;
    }
    message
        .get("params")
        .and_then(|params| params.get("requestId"))
        .and_then(Id::from_value)
        .map_or(Incoming::Nothing, Incoming::Cancelled)
}

fn request(method: String, id: &Value, mut message: Map<String, Value>) -> Incoming {
    let Some(id) = Id::from_value(id) else {
        let text = "The `id` of a request is a string or a whole number.";
        return Incoming::Broken(None, RpcError::new(INVALID_REQUEST, text));
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let text = "The `jsonrpc` field must be \"2.0\".";
        return Incoming::Broken(Some(id), RpcError::new(INVALID_REQUEST, text));
    }
    match message.remove("params") {
        None => Incoming::Request(Request { id, method, params: Map::new() }),
        Some(Value::Object(params)) => Incoming::Request(Request { id, method, params }),
        Some(_) => {
            let text = "The `params` of a request are an object.";
            Incoming::Broken(Some(id), RpcError::new(INVALID_PARAMS, text))
        }
    }
}

/// Builds a message with a result.
pub fn result(id: &Id, result: Map<String, Value>) -> Bytes {
    encode(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Builds a notification to the client.
pub fn notify(method: &str, params: Value) -> Bytes {
    encode(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn encode(message: &Value) -> Bytes {
    Bytes::from(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_json_type() {
        assert_ne!(Id::from_value(&json!(1)), Id::from_value(&json!("1")));
        for bad in [json!(null), json!(1.5), json!([1]), json!({}), json!(true)] {
            assert_eq!(Id::from_value(&bad), None, "{bad}");
        }
    }

    #[test]
    fn notifications_and_answers_are_not_requests() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
        ] {
            assert_eq!(parse(text.as_bytes()), Incoming::Nothing, "{text}");
        }
    }

    #[test]
    fn broken_messages_say_what_is_wrong() {
        let code = |text: &str| match parse(text.as_bytes()) {
            Incoming::Broken(id, error) => (id.is_some(), error.code),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(code("{"), (false, PARSE_ERROR));
        assert_eq!(code("[]"), (false, INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#), (false, INVALID_REQUEST));
        assert_eq!(code(r#"{"id":1,"method":"x"}"#), (true, INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), (true, INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#), (true, INVALID_PARAMS));
    }
}
