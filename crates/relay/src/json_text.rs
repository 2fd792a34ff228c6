//! JSON text, kept as it was received.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use signalbox_engine::budget::WEIGHED;
use std::fmt;

/// JSON value as text. A large value is a slice of the message that carried it, so it stays charged to the message
/// budget for as long as a clone lives, and clones are cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Bytes);

impl JsonText {
    /// Creates the text of a value parsed from `message`.
    #[must_use]
    pub fn within(message: &Bytes, value: &RawValue) -> Self {
        let text = value.get().as_bytes();
        let start = (text.as_ptr() as usize).checked_sub(message.as_ptr() as usize);
        match start.and_then(|start| Some(start..start.checked_add(text.len())?)) {
            // A small value is copied, so that it does not keep its whole message alive.
            Some(place) if text.len() >= WEIGHED && message.get(place.clone()) == Some(text) => {
                Self(message.slice(place))
            }
            _ => Self(Bytes::copy_from_slice(text)),
        }
    }

    /// Returns the value `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    #[must_use]
    pub fn get(&self) -> &str {
        // Always constructed from UTF-8.
        std::str::from_utf8(&self.0).unwrap_or("null")
    }
}

impl From<Box<RawValue>> for JsonText {
    fn from(value: Box<RawValue>) -> Self {
        Self(Bytes::from(String::from(Box::<str>::from(value))))
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(self.get()).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::Principal;
    use signalbox_engine::budget::Budget;

    #[test]
    fn a_large_value_keeps_the_charge_of_its_message_and_a_small_one_does_not() {
        let budget = Budget::new(1 << 20);
        let share = budget.session(&Principal::anonymous());
        let message = |length: usize| {
            let text = format!(r#"{{"large":"{}","small":1}}"#, "x".repeat(length));
            share.take(text.len(), 0).unwrap().attach(text.into())
        };
        let part = |message: &Bytes, name: &str| {
            let members: std::collections::HashMap<&str, &RawValue> = serde_json::from_slice(message).unwrap();
            JsonText::within(message, members[name])
        };
        let whole = message(10_000);
        let (large, small) = (part(&whole, "large"), part(&whole, "small"));
        let used = budget.used();
        drop(whole);
        assert_eq!((budget.used(), small.get(), large.get().len()), (used, "1", 10_002));
        let copy = large.clone();
        drop(large);
        assert_eq!(budget.used(), used);
        assert_eq!(serde_json::to_string(&copy).unwrap(), copy.get());
        assert_eq!(serde_json::from_str::<JsonText>(copy.get()).unwrap(), copy);
        drop(copy);
        assert_eq!(budget.used(), 0);
    }
}
