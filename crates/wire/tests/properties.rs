//! Properties over generated JSON.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;
use signalbox_wire::{Edits, Envelope, Limits, RawId, Span, json, scan, single_line};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Fractions that serde_json reads back exactly.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| { Value::from(members.into_iter().collect::<serde_json::Map<_, _>>()) }),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d\"\\\\é]{0,2}", any_json(), 0..6)
        .prop_map(|members| Value::from(members.into_iter().collect::<serde_json::Map<_, _>>()))
}

fn written(value: &Value, pretty: bool) -> Bytes {
    let text = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    Bytes::from(text.unwrap_or_default())
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| Value::from(format!("not JSON: {error}")))
}

proptest! {
    #[test]
    fn scan_accepts_what_serde_json_writes(value in any_json(), pretty: bool) {
        prop_assert_eq!(scan(&written(&value, pretty), &Limits::default()), Ok(()));
    }

    /// One changed byte: whatever the scan accepts, serde_json reads as well.
    #[test]
    fn scan_accepts_nothing_that_serde_json_refuses(value in any_json(), at: prop::sample::Index, byte: u8) {
        let mut bytes = written(&value, true).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if scan(&bytes, &Limits::default()).is_ok() {
            prop_assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
        }
    }

    /// Proves N-15.
    #[test]
    fn single_line_means_the_same(value in any_json()) {
        let line = single_line(&written(&value, true)).unwrap();
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(read(&line), value);
    }

    #[test]
    fn a_set_member_is_the_only_change(value in object(), key in "[a-d\"\\\\é]{0,2}", pretty: bool) {
        let base = written(&value, pretty);
        let mut edits = Edits::new();
        edits.set_member(&base, Span::new(0, base.len()), &key, b"\"new\"");
        let mut expected = value;
        expected[&key] = "new".into();
        prop_assert_eq!(read(&edits.apply(&base)), expected);
    }

    /// Any mixture of setting and removing, against the same done to a document.
    #[test]
    fn member_changes_add_up(
        value in object(),
        changes in prop::collection::vec(("[a-d\"\\\\é]{0,2}", any::<Option<u8>>()), 0..8),
        pretty: bool,
    ) {
        let base = written(&value, pretty);
        let mut edits = Edits::new();
        let mut expected = value;
        let whole = Span::new(0, base.len());
        for (key, change) in &changes {
            match change {
                Some(number) => {
                    edits.set_member(&base, whole, key, number.to_string().as_bytes());
                    expected[key] = (*number).into();
                }
                None => {
                    edits.remove_member(&base, whole, key);
                    expected.as_object_mut().unwrap().remove(key);
                }
            }
        }
        prop_assert_eq!(read(&edits.apply(&base)), expected);
    }

    /// Against the simplest way to do it: from the back, each in a copy.
    #[test]
    fn edits_keep_every_other_byte(base in "[a-z]{0,40}", places in prop::collection::btree_set(0_usize..41, 0..12)) {
        let places: Vec<usize> = places.into_iter().filter(|place| *place <= base.len()).collect();
        let spans: Vec<(usize, usize)> = places.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let bytes = Bytes::copy_from_slice(base.as_bytes());
        let mut edits = Edits::new();
        let mut expected = base.clone();
        for (start, end) in spans.iter().rev() {
            edits.replace(Span::new(*start, *end), format!("<{start}>"));
            expected.replace_range(*start..*end, &format!("<{start}>"));
        }
        prop_assert_eq!(edits.apply(&bytes), expected.as_bytes());
    }

    #[test]
    fn every_member_is_found(value in object(), pretty: bool) {
        let base = written(&value, pretty);
        for (key, member) in value.as_object().unwrap() {
            prop_assert_eq!(&read(json::member(&base, key).unwrap().of(&base)), member);
        }
        prop_assert_eq!(json::members(&base).count(), value.as_object().unwrap().len());
    }

    #[test]
    fn another_id_leaves_params_alone(params in object(), id: String) {
        let text = format!(r#"{{"jsonrpc":"2.0","params":{params},"id":1,"method":"m"}}"#);
        let envelope = Envelope::parse(Bytes::from(text)).unwrap();
        let id = RawId::string(&id);
        let other = Envelope::parse(envelope.with_id(id.token())).unwrap();
        prop_assert_eq!(other.id(), Some(id));
        prop_assert_eq!(other.params(), envelope.params());
    }

    #[test]
    fn quoting_agrees_with_serde_json(text: String) {
        let quoted = json::quote(&text);
        prop_assert_eq!(read(quoted.as_bytes()), Value::from(text));
    }
}
