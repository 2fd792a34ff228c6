//! Why a request is answered with an error.

use serde_json::{Value, json};

/// An error answer, and the HTTP status it has in the new era.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcFault {
    /// The JSON-RPC code.
    pub code: i64,
    /// What is wrong, in words.
    pub message: String,
    /// More of it, for programs.
    pub data: Option<Value>,
    /// The HTTP status if it is the whole answer.
    pub status: u16,
}

impl RpcFault {
    /// A fault of this code, with the status that the new era gives it.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let status = match code {
            -32601 => 404,
            -32600 | -32700 | -32022..=-32020 => 400,
            _ => 200,
        };
        Self { code, message: message.into(), data: None, status }
    }

    /// Parameters that do not fit.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// A method that this revision does not have.
    pub fn method(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {method}"))
    }

    /// With more for programs.
    pub fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// With another HTTP status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The answer to the request of this id.
    pub fn reply(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}
