//! Conversion of messages to protobuf and back, within size limits.

use bytes::Bytes;
use prost::Message;

use crate::message_error::MessageError;
use crate::proto::mcp_message::Message as Either;
use crate::proto::{McpMessage, McpRequest, McpResponse};

/// Size limits for messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MessageLimits {
    /// Maximum size of a serialized message, in bytes.
    pub message: usize,
    /// Maximum size of `response_payload`, in bytes.
    pub payload: usize,
}

impl Default for MessageLimits {
    /// 10,000,000 bytes for a message, 5,000,000 for a payload.
    fn default() -> Self {
        Self { message: 10_000_000, payload: 5_000_000 }
    }
}

impl MessageLimits {
    /// Serializes a request to protobuf.
    ///
    /// # Errors
    /// If it is too large.
    pub fn serialize_request(&self, request: &McpRequest) -> Result<Vec<u8>, MessageError> {
        check("the request", request.encoded_len(), self.message)?;
        Ok(request.encode_to_vec())
    }

    /// Serializes a response to protobuf.
    ///
    /// # Errors
    /// If the response or its payload is too large.
    pub fn serialize_response(&self, response: &McpResponse) -> Result<Vec<u8>, MessageError> {
        check("the payload of the response", response.response_payload.len(), self.payload)?;
        check("the response", response.encoded_len(), self.message)?;
        Ok(response.encode_to_vec())
    }

    /// Parses a request from protobuf. Its binary fields are slices of `bytes`, not copies.
    ///
    /// # Errors
    /// If it is too large or malformed.
    pub fn deserialize_request(&self, bytes: Bytes) -> Result<McpRequest, MessageError> {
        check("the request", bytes.len(), self.message)?;
        Ok(McpRequest::decode(bytes)?)
    }

    /// Parses a message of either kind from protobuf. Its binary fields are slices of `bytes`, not copies.
    ///
    /// # Errors
    /// If the message or its payload is too large, or if it is malformed.
    pub fn deserialize_message(&self, bytes: Bytes) -> Result<McpMessage, MessageError> {
        check("the message", bytes.len(), self.message)?;
        let message = McpMessage::decode(bytes)?;
        if let Some(Either::Response(response)) = &message.message {
            check("the payload of the response", response.response_payload.len(), self.payload)?;
        }
        Ok(message)
    }

    /// Parses a response from protobuf. Its binary fields are slices of `bytes`, not copies.
    ///
    /// # Errors
    /// If the response or its payload is too large, or if it is malformed.
    pub fn deserialize_response(&self, bytes: Bytes) -> Result<McpResponse, MessageError> {
        check("the response", bytes.len(), self.message)?;
        let response = McpResponse::decode(bytes)?;
        check("the payload of the response", response.response_payload.len(), self.payload)?;
        Ok(response)
    }
}

fn check(what: &'static str, bytes: usize, limit: usize) -> Result<(), MessageError> {
    if bytes > limit { Err(MessageError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// Serializes a request to protobuf, within the default limits.
///
/// # Errors
/// If it is too large.
pub fn serialize_request(request: &McpRequest) -> Result<Vec<u8>, MessageError> {
    MessageLimits::default().serialize_request(request)
}

/// Parses a request from protobuf, within the default limits. [`MessageLimits::deserialize_request`] does the same
/// without copying.
///
/// # Errors
/// If it is too large or malformed.
pub fn deserialize_request(bytes: &[u8]) -> Result<McpRequest, MessageError> {
    check("the request", bytes.len(), MessageLimits::default().message)?;
    Ok(McpRequest::decode(bytes)?)
}

/// Serializes a response to protobuf, within the default limits.
///
/// # Errors
/// If the response or its payload is too large.
pub fn serialize_response(response: &McpResponse) -> Result<Vec<u8>, MessageError> {
    MessageLimits::default().serialize_response(response)
}

/// Parses a response from protobuf, within the default limits. [`MessageLimits::deserialize_response`] does the same
/// without copying.
///
/// # Errors
/// If the response or its payload is too large, or if it is malformed.
pub fn deserialize_response(bytes: &[u8]) -> Result<McpResponse, MessageError> {
    let limits = MessageLimits::default();
    check("the response", bytes.len(), limits.message)?;
    let response = McpResponse::decode(bytes)?;
    check("the payload of the response", response.response_payload.len(), limits.payload)?;
    Ok(response)
}
