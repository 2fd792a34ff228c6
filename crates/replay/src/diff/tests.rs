use super::*;
use proptest::prelude::*;
use serde_json::json;

fn told(by: &Comparison, recorded: &Value, new: &Value) -> Vec<String> {
    let differences = by.compare(recorded, new);
    let line = |one: &Difference| {
        let shown = one.shown();
        format!("{} {} {} -> {}", one.kind.word(), one.pointer, shown.recorded, shown.new)
    };
    differences.list.iter().map(line).collect()
}

fn check(recorded: Value, new: Value, expected: &[&str]) {
    assert_eq!(told(&Comparison::default(), &recorded, &new), expected);
}

fn ignoring(paths: &[&str]) -> Comparison {
    Comparison { ignored: Paths::parse(paths).unwrap(), ..Comparison::default() }
}

#[test]
fn members_are_told_apart_by_name_and_numbers_by_value() {
    check(json!({"a": 1, "b": {"c": 2.0}}), json!({"b": {"c": 2}, "a": 1.0}), &[]);
    check(
        json!({"a": 1, "b": "x", "gone": null, "d": [1]}),
        json!({"a": 2, "b": 7, "new": {}, "d": [1]}),
        &["changed /a 1 -> 2", "type /b \"x\" -> 7", "missing /gone null -> (none)", "added /new (none) -> {}"],
    );
    check(
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992_u64),
        &["changed  9007199254740993 -> 9007199254740992"],
    );
    check(json!({"a/b": {"~": 1}}), json!({"a/b": {"~": 2}}), &["changed /a~1b/~0 1 -> 2"]);
}

#[test]
fn an_inserted_item_is_one_difference() {
    check(json!([1, 2, 3]), json!([1, 9, 2, 3]), &["added /1 (none) -> 9"]);
    check(json!([1, 2, 3]), json!([2, 3]), &["missing /0 1 -> (none)"]);
    check(json!([1, 2, 3]), json!([1, 7, 3]), &["changed /1 2 -> 7"]);
    let tool = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    check(
        json!([tool("a", "A"), tool("b", "B"), tool("c", "C")]),
        json!([tool("new", "N"), tool("a", "A"), tool("b", "better"), tool("c", "C")]),
        &[
            r#"added /0 (none) -> {"name":"new","description":"N","inputSchema":{"type":"object"}}"#,
            r#"changed /1/description "B" -> "better""#,
        ],
    );
    // Every item changed, and one more: the others are still compared with their own like.
    check(
        json!([tool("a", "A"), tool("b", "B")]),
        json!([tool("x", "X"), tool("a", "A2"), tool("b", "B2")]),
        &[
            r#"added /0 (none) -> {"name":"x","description":"X","inputSchema":{"type":"object"}}"#,
            r#"changed /0/description "A" -> "A2""#,
            r#"changed /1/description "B" -> "B2""#,
        ],
    );
}

#[test]
fn large_arrays_that_have_nothing_in_common_are_compared_by_index_in_time() {
    let list = |from: usize| Value::from((from..from + 50_000).collect::<Vec<_>>());
    let differences = Comparison::default().compare(&list(0), &list(1_000_000));
    assert_eq!((differences.list.len(), differences.more), (MAX_DIFFERENCES, 49_000));
    assert_eq!(differences.worst, Some(Tier::Changed));
}

#[test]
fn unordered_arrays_are_bags() {
    let by = Comparison { unordered: Paths::parse(["/tags"]).unwrap(), ..Comparison::default() };
    assert_eq!(told(&by, &json!({"tags": ["a", "b", "b"]}), &json!({"tags": ["b", "a", "b"]})), [""; 0]);
    assert_eq!(
        told(&by, &json!({"tags": ["a", "b", "b"]}), &json!({"tags": ["b", "a"]})),
        ["missing /tags/2 \"b\" -> (none)"]
    );
    let rows = |list: Value| json!({"tags": list});
    assert_eq!(
        told(
            &by,
            &rows(json!([{"id": 1, "v": "x"}, {"id": 2, "v": "y"}])),
            &rows(json!([{"id": 2, "v": "z"}, {"id": 1, "v": "x"}]))
        ),
        ["changed /tags/1/v \"y\" -> \"z\""]
    );
    assert!(!Comparison::default().compare(&json!({"tags": [1, 2]}), &json!({"tags": [2, 1]})).is_same());
}

/// Numbers within a tolerance of 0.01 are the same, and the default is exact.
/// Proves SO-12.
#[test]
fn numbers_within_the_tolerance_are_the_same() {
    let by = Comparison { tolerance: USUAL_TOLERANCE, ..Comparison::default() };
    for (one, other, same) in [
        (1.0, 1.009, true),
        (0.0, 0.01, true),
        (0.0, 0.02, false),
        (1000.0, 1009.0, true),
        (1000.0, 1011.0, false),
        (-5.0, 5.0, false),
    ] {
        assert_eq!(by.compare(&json!([one]), &json!([one, other])).list.len(), 1);
        assert_eq!(by.compare(&json!({"n": one}), &json!({"n": other})).is_same(), same, "{one} {other}");
        assert!(!Comparison::default().compare(&json!({"n": one}), &json!({"n": other})).is_same());
    }
    // Alignment knows it too: nothing here is equal, one item is new.
    assert_eq!(told(&by, &json!([1.0, 50.0, 99.0]), &json!([7, 1.001, 50.1, 99.2])), ["added /0 (none) -> 7"]);
}

/// Fields such as timestamps and ids are ignored by their paths.
/// Proves SO-12.
#[test]
fn fields_are_ignored_by_name_anywhere() {
    let by = ignoring(&["/**/timestamp", "/**/session_id"]);
    let message = |at: &str, value: u32| json!({"result": {"rows": [{"timestamp": at, "v": value}], "session_id": at}});
    assert!(by.compare(&message("a", 1), &message("b", 1)).is_same());
    assert_eq!(told(&by, &message("a", 1), &message("b", 2)), ["changed /result/rows/0/v 1 -> 2"]);
}

#[test]
fn ids_never_count_and_meta_only_where_it_is_wanted() {
    let message =
        |id: u32, value: u32| json!({"jsonrpc": "2.0", "id": id, "result": {"id": value, "_meta": {"n": id}}});
    let compare = |by: &Comparison, one: &Value, other: &Value| by.compare_messages(one.into(), other.into());
    let by = Comparison::default();
    assert!(compare(&by, &message(1, 5), &message(2, 5)).is_same());
    assert_eq!(by.digest(&message(1, 5)), by.digest(&message(2, 5)));
    assert_ne!(by.digest(&message(1, 5)), by.digest(&message(1, 6)));
    assert_eq!(compare(&by, &message(1, 5), &message(1, 6)).list[0].pointer, "/result/id");
    let with_meta = Comparison { meta: true, ..by };
    assert_eq!(compare(&with_meta, &message(1, 5), &message(2, 5)).list[0].pointer, "/result/_meta/n");
}

#[test]
fn json_in_a_text_is_compared_as_json_and_named_through_the_text() {
    let message = |text: &str| json!({"result": {"content": [{"type": "text", "text": text}]}});
    let (old, new) = (message(r#"{"items":[{"id":1}],"n":2.0}"#), message("{ \"n\": 2, \"items\": [{\"id\":4}] }"));
    let mut by = Comparison { json_in_text: true, ..Comparison::default() };
    assert_eq!(told(&by, &old, &new), ["changed /result/content/0/text/@json/items/0/id 1 -> 4"]);
    by.ignored = Paths::parse(["/result/content/*/text/@json/**/id"]).unwrap();
    assert!(by.compare(&old, &new).is_same());
    assert_eq!(by.digest(&old), by.digest(&new));
    assert_eq!(Comparison::default().compare(&old, &new).list[0].pointer, "/result/content/0/text");
    // What is JSON on one side only is a text.
    assert_eq!(by.compare(&old, &message("{broken")).list[0].pointer, "/result/content/0/text");
}

#[test]
fn long_texts_are_shown_around_their_first_difference() {
    let text = |middle: &str| format!("{}{middle}{}", "a".repeat(500), "z".repeat(500));
    let differences = Comparison::default().compare(&json!(text("old")), &json!(text("new")));
    let shown = differences.list[0].shown();
    assert!(shown.recorded.starts_with(&format!("…\"{}old", "a".repeat(20))), "{}", shown.recorded);
    assert!(shown.new.ends_with("z\"…") && shown.new.chars().count() < 110);
}

#[test]
fn redacted_places_are_counted_and_not_compared() {
    let masks = Masks::of_rules(&["key password: remove"]);
    let hidden = |message| DiffSide { message, masks: Some(&masks) };
    let old =
        json!({"result": {"token": "[redacted]", "text": "key [redacted]!", "n": 1, "sum": "hash:0011223344556677"}});
    let new = json!({"result": {"token": {"a": 1}, "text": "key k-1!", "password": "p", "n": 2, "sum": "s"}});
    let by = Comparison::default();
    let found = by.compare_messages(hidden(&old), DiffSide::from(&new));
    assert_eq!(found.list.iter().map(|one| one.pointer.as_str()).collect::<Vec<_>>(), ["/result/n"]);
    assert_eq!(found.masked, 4);
    assert_eq!(by.compare_messages(hidden(&old), hidden(&old)).masked, 3, "equal masks may hide different values");
    assert_eq!(
        by.compare_messages(DiffSide::from(&old), DiffSide::from(&new)).list.len(),
        5,
        "a mask is a text elsewhere"
    );
}

#[test]
fn tiers_of_results() {
    let tier = |old: Value, new: Value| Comparison::default().compare(&old, &new).worst;
    assert_eq!(tier(json!({"a": 1}), json!({"a": 1, "b": 2})), Some(Tier::Compatible));
    assert_eq!(tier(json!({"a": 1}), json!({"a": 2})), Some(Tier::Changed));
    assert_eq!(tier(json!({"a": 1}), json!({})), Some(Tier::Breaking));
    assert_eq!(tier(json!({"a": 1}), json!({"a": "1"})), Some(Tier::Breaking));
    assert_eq!(tier(json!({"a": [1, 2]}), json!({"a": [1]})), Some(Tier::Changed));
    assert_eq!(tier(json!(1), json!(1)), None);
}

#[test]
fn deep_and_nested_documents_end() {
    let nest = |value: Value| (0..600).fold(value, |inner, _| json!({"a": inner}));
    std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            let found = Comparison::default().compare(&nest(json!(1)), &nest(json!(2)));
            assert_eq!(found.list.len(), 1);
        })
        .unwrap()
        .join()
        .unwrap();
    let mut text = "[1]".to_owned();
    for _ in 0..8 {
        text = json!([text]).to_string();
    }
    let by = Comparison { json_in_text: true, ..Comparison::default() };
    assert_eq!(by.compare(&json!(text), &json!(text.replace('1', "2"))).list.len(), 1);
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[a-c~/\\[{\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map("[a-d/~*]{1,2}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// All places of a document, the top included.
fn places(value: &Value, here: String, all: &mut Vec<String>) {
    all.push(here.clone());
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| places(value, format!("{here}/{}", crate::paths::escaped(name)), all)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| places(value, format!("{here}/{index}"), all));
        }
        _ => {}
    }
}

fn mutated(document: &Value, at: usize) -> (String, Value) {
    let mut all = Vec::new();
    places(document, String::new(), &mut all);
    let place = all[at % all.len()].clone();
    let mut new = document.clone();
    *new.pointer_mut(&place).unwrap() = json!("mutated, which nothing else is");
    (place, new)
}

proptest! {
    #[test]
    fn a_document_is_the_same_as_itself(one in document(), json_in_text: bool, tolerance in prop_oneof![Just(0.0), Just(0.01)]) {
        let by = Comparison { json_in_text, tolerance, ..Comparison::default() };
        prop_assert!(by.compare(&one, &one).is_same());
        let reread: Value = serde_json::from_str(&one.to_string()).unwrap();
        prop_assert_eq!(by.digest(&one), by.digest(&reread));
    }

    #[test]
    fn a_single_mutation_is_found_where_it_is_and_silenced_by_its_path(one in document(), at: usize, json_in_text: bool) {
        let (place, new) = mutated(&one, at);
        let mut by = Comparison { json_in_text, ..Comparison::default() };
        let found = by.compare(&one, &new);
        prop_assert_eq!(found.list.len(), 1);
        prop_assert_eq!(&found.list[0].pointer, &place);
        prop_assert_ne!(by.digest(&one), by.digest(&new));
        if !place.is_empty() && !place.contains('*') {
            by.ignored = Paths::parse([&place]).unwrap();
            prop_assert!(by.compare(&one, &new).is_same());
            // Nothing else is silenced with it.
            let mut other = new.clone();
            if let Value::Object(members) = &mut other {
                members.insert("quite new".to_owned(), json!(1));
                prop_assert_eq!(&by.compare(&one, &other).list[0].pointer, "/quite new");
            }
        }
    }

    #[test]
    fn an_item_inserted_or_removed_anywhere_is_one_difference(items in proptest::collection::vec(0_u32..9, 0..12), at: usize) {
        let at = at % (items.len() + 1);
        let mut longer = items.clone();
        longer.insert(at, 77);
        let (short, long) = (Value::from(items), Value::from(longer));
        let by = Comparison::default();
        prop_assert_eq!(told(&by, &short, &long), [format!("added /{at} (none) -> 77")]);
        prop_assert_eq!(told(&by, &long, &short), [format!("missing /{at} 77 -> (none)")]);
    }

    #[test]
    fn two_documents_are_compared_without_a_panic_and_alike_in_both_directions(one in document(), other in document()) {
        let by = Comparison { json_in_text: true, tolerance: 0.01, unordered: Paths::parse(["/a"]).unwrap(), ..Comparison::default() };
        prop_assert_eq!(by.compare(&one, &other).is_same(), by.compare(&other, &one).is_same());
    }
}
