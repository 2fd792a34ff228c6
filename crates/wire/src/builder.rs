//! Builds messages that the gateway writes itself. Forwarded messages are spliced instead.

use bytes::Bytes;

use crate::batch;
use crate::id::RawId;
use crate::json;
use crate::meta::META;
use crate::span::Span;
use crate::splice::Edits;

/// Generator of consecutive numeric ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ids {
    next: u64,
}

impl Ids {
    /// Creates a generator that starts at 1.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(1)
    }

    /// Creates a generator that starts at `first`.
    #[must_use]
    pub fn starting_at(first: u64) -> Self {
        Self { next: first }
    }

    /// Returns the next id as a number.
    pub fn next_number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    /// Returns the next id as a token.
    pub fn next_id(&mut self) -> RawId {
        RawId::number(self.next_number())
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

/// Params under construction. The caller must pass valid JSON as raw values.
#[derive(Clone, Debug, Default)]
struct Params {
    base: Option<Bytes>,
    members: Vec<(String, Bytes)>,
    meta: Vec<(String, Bytes)>,
}

impl Params {
    /// Builds the params, or returns `None` if there are none.
    fn build(&self) -> Option<Bytes> {
        if self.members.is_empty() && self.meta.is_empty() {
            return self.base.clone();
        }
        let base = with_members(self.base.clone().unwrap_or(Bytes::from_static(b"{}")), &self.members);
        if self.meta.is_empty() {
            return Some(base);
        }
        let old = json::member(&base, META).map(|span| base.slice(span.range()));
        let meta = with_members(old.unwrap_or(Bytes::from_static(b"{}")), &self.meta);
        Some(with_members(base, &[(META.to_owned(), meta)]))
    }
}

fn with_members(object: Bytes, members: &[(String, Bytes)]) -> Bytes {
    let mut edits = Edits::new();
    for (key, value) in members {
        edits.set_member(&object, Span::new(0, object.len()), key, value);
    }
    edits.apply(&object)
}

macro_rules! params_methods {
    () => {
        /// Sets a param to a raw JSON value.
        #[must_use]
        pub fn param_raw(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
            self.params.members.push((key.to_owned(), Bytes::copy_from_slice(value.as_ref())));
            self
        }

        /// Sets a param to a string.
        #[must_use]
        pub fn param_str(self, key: &str, value: &str) -> Self {
            self.param_raw(key, json::quote(value))
        }

        /// Sets all params to a raw JSON object or array. Single params and meta are added to an object.
        #[must_use]
        pub fn params_raw(mut self, params: impl AsRef<[u8]>) -> Self {
            self.params.base = Some(Bytes::copy_from_slice(params.as_ref()));
            self
        }

        /// Sets a member of `_meta` to a raw JSON value.
        #[must_use]
        pub fn meta_raw(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
            self.params.meta.push((key.to_owned(), Bytes::copy_from_slice(value.as_ref())));
            self
        }

        /// Sets a member of `_meta` to a string.
        #[must_use]
        pub fn meta_str(self, key: &str, value: &str) -> Self {
            self.meta_raw(key, json::quote(value))
        }
    };
}

/// Builder of a request.
#[derive(Clone, Debug)]
pub struct RequestBuilder {
    id: RawId,
    method: String,
    params: Params,
}

impl RequestBuilder {
    /// Creates a request for `method`. Its id is 0 until [`Self::id`] sets another one.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self { id: RawId::number(0), method: method.to_owned(), params: Params::default() }
    }

    /// Sets the request's id.
    #[must_use]
    pub fn id(mut self, id: RawId) -> Self {
        self.id = id;
        self
    }

    /// Sets the id to the next one of `ids`.
    #[must_use]
    pub fn auto_id(self, ids: &mut Ids) -> Self {
        self.id(ids.next_id())
    }

    params_methods!();

    /// Builds the bytes of the message.
    #[must_use]
    pub fn build(&self) -> Bytes {
        message(Some(&self.id), &self.method, &self.params)
    }
}

/// Builder of a notification.
#[derive(Clone, Debug)]
pub struct Notification {
    method: String,
    params: Params,
}

impl Notification {
    /// Creates a notification of `method`.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self { method: method.to_owned(), params: Params::default() }
    }

    params_methods!();

    /// Builds the bytes of the message.
    #[must_use]
    pub fn build(&self) -> Bytes {
        message(None, &self.method, &self.params)
    }
}

fn message(id: Option<&RawId>, method: &str, params: &Params) -> Bytes {
    let params = params.build();
    let mut out = start(id, method.len() + params.as_ref().map_or(0, Bytes::len));
    out.extend_from_slice(b",\"method\":");
    json::write_quoted(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(&params);
    }
    out.push(b'}');
    Bytes::from(out)
}

fn start(id: Option<&RawId>, room: usize) -> Vec<u8> {
    const MEMBERS: usize = 64;
    let mut out = Vec::with_capacity(room + MEMBERS + id.map_or(0, |id| id.token().len()));
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id.token());
    }
    out
}

/// Builds a response with a raw JSON result.
#[must_use]
pub fn response(id: &RawId, result: &[u8]) -> Bytes {
    let mut out = start(Some(id), result.len());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    Bytes::from(out)
}

/// Builds an error response. Without an id, it is addressed to `null`. `data` is raw JSON.
#[must_use]
pub fn error(id: Option<&RawId>, code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    let null = RawId::null();
    let mut out = start(Some(id.unwrap_or(&null)), message.len() + data.map_or(0, <[u8]>::len));
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    json::write_quoted(&mut out, message);
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data);
    }
    out.extend_from_slice(b"}}");
    Bytes::from(out)
}

/// Builder of a batch.
#[derive(Clone, Debug, Default)]
pub struct BatchBuilder {
    messages: Vec<Bytes>,
}

impl BatchBuilder {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message and returns the builder.
    #[must_use]
    pub fn with(mut self, message: impl Into<Bytes>) -> Self {
        self.push(message);
        self
    }

    /// Adds a message in place.
    pub fn push(&mut self, message: impl Into<Bytes>) {
        self.messages.push(message.into());
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns `true` if there is no message. JSON-RPC does not allow sending an empty batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Builds the batch as a JSON array.
    #[must_use]
    pub fn build(&self) -> Bytes {
        batch::join(&self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    /// Proves S-9 and S-10.
    #[test]
    fn requests_are_built_in_a_chain_with_automatic_ids() {
        let mut ids = Ids::new();
        let built = RequestBuilder::new("tools/call")
            .auto_id(&mut ids)
            .param_str("name", "say \"hi\"")
            .param_raw("arguments", "{}")
            .meta_raw("progressToken", "7")
            .build();
        assert_eq!(
            built,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say \"hi\"","arguments":{},"_meta":{"progressToken":7}}}"#
        );
        assert_eq!(
            RequestBuilder::new("ping").auto_id(&mut ids).build(),
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#
        );
        assert_eq!(Ids::starting_at(u64::MAX).next_number(), u64::MAX);
    }

    /// Proves S-9.
    #[test]
    fn raw_params_can_be_added_to() {
        let built = RequestBuilder::new("m")
            .id(RawId::string("a"))
            .params_raw(br#"{"x":1,"_meta":{"a":1}}"#)
            .param_raw("x", b"2")
            .meta_str("b", "c")
            .build();
        assert_eq!(built, r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":2,"_meta":{"a":1,"b":"c"}}}"#);
        assert_eq!(Notification::new("n").params_raw("[1]").build(), r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#);
    }

    /// Proves S-11.
    #[test]
    fn a_batch_is_built_from_several_messages() {
        let batch = BatchBuilder::new().with(Notification::new("a").build()).with(response(&RawId::number(1), b"{}"));
        assert_eq!((batch.len(), batch.is_empty()), (2, false));
        assert_eq!(batch.build(), r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":{}}]"#);
    }

    /// Proves S-12, N-23 and N-43.
    #[test]
    fn error_responses_have_their_helpers() {
        assert_eq!(
            error(None, codes::PARSE_ERROR, "Parse error: x", None),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: x"}}"#
        );
        assert_eq!(
            error(Some(&RawId::number(3)), 4030, "no", Some(br#"{"reason":"denied"}"#)),
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":4030,"message":"no","data":{"reason":"denied"}}}"#
        );
    }
}
