//! JSON that means the same to every reader: no member twice, and none that was not read.

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

/// Checks that no object has a member twice: readers differ in which of the two they show. Returns the names of the
/// outermost members.
///
/// # Errors
/// If a member is doubled, which the error names, or the text is not JSON.
pub(crate) fn check(text: &[u8]) -> serde_json::Result<HashSet<String>> {
    serde_json::from_slice::<MemberNames>(text).map(|names| names.0)
}

/// Returns the path of the first member or element of `given` that `read` does not have with the same value. A document
/// was read completely if there is none, where `read` is what the result of reading it is written as.
pub(crate) fn unread(given: &Value, read: &Value) -> Option<String> {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, value)| {
            let inner = match read.get(name) {
                Some(read) => unread(value, read)?,
                None => String::new(),
            };
            Some(below(name, &inner))
        }),
        (Value::Array(given), Value::Array(read)) if given.len() == read.len() => {
            let mut pairs = given.iter().zip(read).enumerate();
            pairs.find_map(|(index, (given, read))| Some(below(&index.to_string(), &unread(given, read)?)))
        }
        _ => (given != read).then(String::new),
    }
}

/// Joins a name and the path below it.
pub(crate) fn below(name: &str, path: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") }
}

/// A JSON value of which only the names of its own members are kept.
#[derive(Default)]
struct MemberNames(HashSet<String>);

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Checker)
    }
}

struct Checker;

impl<'de> Visitor<'de> for Checker {
    type Value = MemberNames;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_unit<E>(self) -> Result<MemberNames, E> {
        Ok(MemberNames::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MemberNames, A::Error> {
        while seq.next_element::<MemberNames>()?.is_some() {}
        Ok(MemberNames::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberNames, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if names.contains(&name) {
                map.next_value::<IgnoredAny>()?;
                return Err(A::Error::custom(format_args!("the member `{name}` is there twice")));
            }
            map.next_value::<MemberNames>()?;
            names.insert(name);
        }
        Ok(MemberNames(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn doubled_members_are_named_however_they_are_written() {
        let check = |text: &str| check(text.as_bytes()).map_err(|error| error.to_string());
        let names = check(r#"{"a":[1,-2.5,null,true,"x",{"a":{}}],"b":{"c":1}}"#).unwrap();
        assert_eq!(names, HashSet::from(["a".to_owned(), "b".to_owned()]));
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert!(check(text).unwrap_err().starts_with("the member `a` is there twice"), "{text}");
        }
        assert!(check("{").is_err());
    }

    #[test]
    fn members_that_were_not_read_are_named() {
        let read = json!({"a": 1, "b": [{"c": null}], "d": "x"});
        let unread = |given: Value| unread(&given, &read);
        assert_eq!(unread(read.clone()), None);
        assert_eq!(unread(json!({"a": 1})), None, "defaults may be left out");
        assert_eq!(unread(json!({"a": 1, "e": null})).as_deref(), Some("e"));
        assert_eq!(unread(json!({"b": [{"c": null, "e": 1}]})).as_deref(), Some("b.0.e"));
        assert_eq!(unread(json!({"b": []})).as_deref(), Some("b"));
        assert_eq!(unread(json!({"d": 1})).as_deref(), Some("d"));
    }
}
