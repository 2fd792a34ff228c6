//! JSON objects written member by member, for messages that the bridge builds.

use signalbox_wire::json;

/// JSON object under construction. The caller guarantees that raw values are valid JSON.
#[derive(Debug)]
pub(crate) struct Object {
    out: Vec<u8>,
}

impl Object {
    /// Creates an object without members.
    pub fn new() -> Self {
        Self { out: vec![b'{'] }
    }

    /// Adds a member with a raw value.
    pub fn raw(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        json::write_quoted(&mut self.out, key);
        self.out.push(b':');
        self.out.extend_from_slice(value.as_ref());
        self
    }

    /// Adds a member with a string.
    pub fn string(self, key: &str, value: &str) -> Self {
        self.raw(key, json::quote(value))
    }

    /// Adds a member with a raw value, if there is one.
    pub fn maybe(self, key: &str, value: Option<impl AsRef<[u8]>>) -> Self {
        match value {
            Some(value) => self.raw(key, value),
            None => self,
        }
    }

    /// Returns the bytes of the object.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// Returns the object as text; `{}` if a raw value is not UTF-8.
    pub fn text(self) -> String {
        String::from_utf8(self.finish()).unwrap_or_else(|_| String::from("{}"))
    }
}

/// Returns the raw value of a member, unless it is absent, `null` or `false`. Such a value counts as declared.
pub(crate) fn declared<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let value = json::member(object, key)?.of(object);
    (value != b"null" && value != b"false").then_some(value)
}

/// Returns true if these bytes are an object, judged by their first byte.
pub(crate) fn is_object(value: &[u8]) -> bool {
    value.get(json::skip_whitespace(value, 0)) == Some(&b'{')
}

/// Returns the decoded value of a string member.
pub(crate) fn string_of<'a>(object: &'a [u8], key: &str) -> Option<std::borrow::Cow<'a, str>> {
    json::string(json::member(object, key)?.of(object))
}

/// Returns true if a member is this string.
pub(crate) fn says(object: &[u8], key: &str, value: &str) -> bool {
    json::member(object, key).is_some_and(|span| json::key_eq(span.of(object), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_follow_each_other_and_names_are_quoted() {
        let made = Object::new().raw("a", "1").string("b\"", "c\n").maybe("d", None::<&str>).maybe("e", Some("[]"));
        assert_eq!(made.text(), r#"{"a":1,"b\"":"c\n","e":[]}"#);
        assert_eq!(Object::new().text(), "{}");
    }

    #[test]
    fn null_and_false_declare_nothing() {
        let object = br#"{"a":{},"b":null,"c":false,"d":true,"kind":"x"}"#;
        let found = ["a", "b", "c", "d", "e"].map(|key| declared(object, key).is_some());
        assert_eq!(found, [true, false, false, true, false]);
        assert!(says(object, "kind", "x") && !says(object, "kind", "y") && !says(object, "a", "x"));
    }
}
