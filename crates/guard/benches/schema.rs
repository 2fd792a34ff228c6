//! What a schema costs for one call of 256 bytes.
#![allow(clippy::unwrap_used, reason = "the inputs are written here")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{Criterion, criterion_group, criterion_main};
use signalbox_guard::schema::{Schema, SchemaValidity};
use std::hint::black_box;

/// Tool `search_issues` of the GitHub server, as it declares its arguments.
const SCHEMA: &str = r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
    "q":{"type":"string","description":"Search query"},
    "order":{"type":"string","enum":["asc","desc"]},
    "sort":{"type":"string","enum":["comments","reactions","created","updated","interactions"]},
    "labels":{"type":"array","items":{"type":"string"}},
    "page":{"type":"number","minimum":1},
    "per_page":{"type":"number","minimum":1,"maximum":100}},
    "required":["q"],"additionalProperties":false}"##;
const CALL: &[u8] = br#"{"q":"repo:example/gateway is:open label:bug a search text of some length, so that this call is as long as an ordinary one of two hundred and fifty bytes","order":"desc","sort":"created","labels":["bug","help wanted","good first issue"],"page":1,"per_page":50}"#;
const COERCIBLE: &[u8] = br#"{"q":"is:open","page":"1","per_page":50}"#;
const INVALID: &[u8] = br#"{"q":"is:open","order":"down","per_page":500,"pgae":1}"#;

fn schema(criterion: &mut Criterion) {
    let schema = Schema::compile(SCHEMA.as_bytes()).unwrap();
    assert_eq!(schema.check(CALL), SchemaValidity::Valid);
    assert!(matches!(schema.check(COERCIBLE), SchemaValidity::Coercible(_)));
    assert!(matches!(schema.check(INVALID), SchemaValidity::Invalid(_)));
    for (name, text) in [("valid", CALL), ("coercible", COERCIBLE), ("invalid", INVALID)] {
        criterion
            .bench_function(&format!("schema/check/{name}"), |bencher| bencher.iter(|| schema.check(black_box(text))));
    }
    let recursive = r##"{"type":"object","properties":{"q":{"type":"string"},"labels":{"items":{"$ref":"#/properties/q"}},"also":{"$ref":"#"}}}"##;
    let recursive = Schema::compile(recursive.as_bytes()).unwrap();
    criterion.bench_function("schema/check/recursive", |bencher| bencher.iter(|| recursive.check(black_box(CALL))));
    criterion
        .bench_function("schema/compile", |bencher| bencher.iter(|| Schema::compile(black_box(SCHEMA.as_bytes()))));
}

criterion_group!(benches, schema);
criterion_main!(benches);
