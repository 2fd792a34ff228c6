//! A custom interceptor: calls whose texts are all in capitals are refused, and everything else goes on.
//!
//! `cargo run -p signalbox-rules --example no_shouting`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_engine::fault::{Fault, FaultKind};

struct NoShouting;

impl Interceptor for NoShouting {
    fn name(&self) -> &'static str {
        "no_shouting"
    }

    fn judge(&self, case: &Case<'_>, _resumed: Option<HoldResponse<'_>>) -> Judgement {
        let arguments = case.message.param("arguments").map(|span| span.of(case.message.bytes()));
        let text = String::from_utf8_lossy(arguments.unwrap_or_default());
        let shouts = text.contains(char::is_uppercase) && !text.contains(char::is_lowercase);
        match case.phase {
            Phase::Request if shouts => Verdict::Refuse(Fault::new(FaultKind::Refused, "please do not shout")).into(),
            _ => Judgement::pass(),
        }
    }
}

fn main() {
    use signalbox_engine::{Caller, Chain};
    let chain = Chain::new(vec![std::sync::Arc::new(NoShouting)]);
    for said in ["Hello", "HELLO"] {
        let json = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"1":"{said}"}}}}}}"#
        );
        let Ok(message) = signalbox_wire::Envelope::parse(json.into()) else { continue };
        let (now, caller) = (std::time::Instant::now(), Caller::anonymous("http"));
        let case = Case {
            phase: Phase::Request,
            message: &message,
            exchange: None,
            caller: &caller,
            acts_for: caller.principal(),
            session: None,
            session_started: now,
            revision: None,
            backend: None,
            now,
            definition: None,
            attempt: 1,
            round: 1,
            can_wait: true,
            by_task: false,
            task_tool: None,
            unix_ms: 0,
        };
        println!("{said}: {:?}", chain.judge(&case, None).verdict);
    }
}

#[test]
fn shouting_is_refused_and_talking_is_not() {
    use signalbox_engine::{Caller, Chain};
    let chain = Chain::new(vec![std::sync::Arc::new(NoShouting)]);
    let (now, caller) = (std::time::Instant::now(), Caller::anonymous("http"));
    for (said, refused) in [("Hello", false), ("HELLO", true)] {
        let json =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{{"1":"{said}"}}}}}}"#);
        let message = signalbox_wire::Envelope::parse(json.into()).unwrap();
        let case = Case {
            phase: Phase::Request,
            message: &message,
            exchange: None,
            caller: &caller,
            acts_for: caller.principal(),
            session: None,
            session_started: now,
            revision: None,
            backend: None,
            now,
            definition: None,
            attempt: 1,
            round: 1,
            can_wait: true,
            by_task: false,
            task_tool: None,
            unix_ms: 0,
        };
        assert_eq!(matches!(chain.judge(&case, None).verdict, Verdict::Refuse(_)), refused);
    }
}
