//! The bridge against bytes that nobody should send: every cut of a message, and one wrong byte anywhere.

use bytes::Bytes;
use signalbox_engine::bridge::tasks::{self, Payload};
use signalbox_engine::bridge::{capabilities, content, digest, errors, listing, questions};
use signalbox_engine::catalog::ListKind;
use signalbox_wire::{Edits, Envelope, Limits, Revision, scan};

const SAMPLES: [&str; 6] = [
    r#"{"resultType":"complete","content":[{"type":"audio","data":"AA"},{"type":"resource_link","uri":"a"}],"structuredContent":[1],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#,
    r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"\u00e9"}]}],"maxTokens":1}"#,
    r#"{"mode":"form","message":"?","requestedSchema":{"properties":{"a":{"oneOf":[{"const":"x","title":"X"}]}}},"task":{},"_meta":{"progressToken":1}}"#,
    r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"c","ttlMs":1,"pollIntervalMs":2,"_meta":{}}"#,
    r#"{"sampling":{"tools":{}},"elicitation":{"url":{}},"roots":{},"extensions":{"a/b":{}},"experimental":{"x":{}}}"#,
    r#"{"name":"t","outputSchema":{"type":"array"},"execution":{"taskSupport":"optional"}}"#,
];

/// Gives the bytes to every function; none may panic. What is valid must stay valid.
fn feed(bytes: &[u8]) {
    let valid = scan(bytes, &Limits::default()).is_ok();
    let same = |made: &[u8]| {
        assert!(!valid || scan(made, &Limits::default()).is_ok(), "{}", String::from_utf8_lossy(made));
    };
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        for to in Revision::ALL {
            questions::to_legacy(method, bytes, to, "m").into_iter().for_each(|made| same(&made));
            questions::answer_to_legacy(method, bytes, to).into_iter().for_each(|made| same(&made));
            same(capabilities::to_legacy(bytes, to).as_bytes());
        }
        same(&questions::to_modern(method, bytes));
        same(&questions::answer_to_modern(method, bytes));
        let _ = (capabilities::allows(bytes, method, bytes), capabilities::required(method, bytes));
    }
    let made = [
        tasks::create_to_modern(bytes),
        tasks::create_to_legacy(bytes),
        tasks::get_to_modern(bytes, Payload::read(bytes)),
        tasks::get_to_legacy(bytes),
        Some(tasks::with_related_task(bytes, "t")),
    ];
    made.iter().flatten().for_each(|made| same(made));
    let _ = (tasks::wish(bytes), tasks::support(bytes), tasks::offered(bytes));
    assert!(!digest::request_digest_input("m", bytes).is_empty());
    for to in Revision::ALL {
        same(&listing::entry(ListKind::Tools, to, &Bytes::copy_from_slice(bytes)));
    }
    for member in ["result", "error"] {
        let text = [br#"{"jsonrpc":"2.0","id":1,""#, member.as_bytes(), b"\":", bytes, b"}"].concat();
        let Ok(message) = Envelope::parse(Bytes::from(text)) else { continue };
        for method in ["tools/call", "prompts/get", "resources/read"] {
            for to in Revision::ALL {
                let mut edits = Edits::new();
                let _ = content::downgrade(method, to, &message, &mut edits);
                same(&edits.apply(message.bytes()));
            }
            let mut edits = Edits::new();
            content::upgrade(method, &message, &mut edits);
            errors::to_modern(method, &message, &mut edits);
            errors::to_legacy(method, &message, &mut edits);
            same(&edits.apply(message.bytes()));
        }
        let _ = errors::url_elicitations(&message);
    }
}

#[test]
fn no_cut_of_a_message_breaks_the_bridge() {
    for sample in SAMPLES {
        (0..=sample.len()).for_each(|end| feed(&sample.as_bytes()[..end]));
    }
}

#[test]
fn no_single_wrong_byte_breaks_the_bridge() {
    for sample in SAMPLES {
        for at in 0..sample.len() {
            for wrong in [b'"', b',', b'7'] {
                let mut bytes = sample.as_bytes().to_vec();
                *bytes.get_mut(at).unwrap() = wrong;
                feed(&bytes);
            }
        }
    }
}
