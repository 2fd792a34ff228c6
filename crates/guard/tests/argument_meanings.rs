//! Meanings of the arguments of published servers. The table was reviewed by hand.

use serde_json::json;
use signalbox_guard::argument_filters::meaning;

#[test]
fn arguments_of_published_servers_mean_what_they_say() {
    let mut rows = 0;
    for row in include_str!("data/argument_meanings.txt").lines().filter(|row| !row.starts_with('#')) {
        let [tool, name, format, choice, expected, description] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let mut schema = json!({ "type": "string", "description": description });
        if !format.is_empty() {
            schema["format"] = format.into();
        }
        if !choice.is_empty() {
            schema["enum"] = json!(["a"]);
        }
        assert_eq!(format!("{:?}", meaning(name, Some(&schema), tool)), expected, "{row}");
        rows += 1;
    }
    assert!(rows > 400, "{rows}");
}
