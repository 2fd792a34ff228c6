//! Risk of a call (G-26), from the annotations of its tool and the trust in its caller.

use crate::call_status::CallStatus;
use crate::event::RiskLevel;
use signalbox_engine::Caller;
use signalbox_engine::standing::TrustLevel;
use signalbox_wire::json;

/// Returns the risk of a tool with this definition. The tool's annotations are hints: they lower the risk no further
/// than that of reading, and raise it no further than that of destroying.
#[must_use]
pub fn of_definition(definition: Option<&[u8]>) -> RiskLevel {
    let hint = |name: &str| {
        let definition = definition?;
        let span = json::path(definition, &["annotations", name])?;
        match span.of(definition) {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    };
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (_, Some(true)) => RiskLevel::High,
        (Some(true), _) => RiskLevel::Low,
        _ => RiskLevel::Medium,
    }
}

/// Returns the risk of a call before it is forwarded, given the risk of its tool.
#[must_use]
pub fn of_call(risk: RiskLevel, caller: &Caller) -> RiskLevel {
    match caller.identity().trust() {
        TrustLevel::Untrusted => risk.raised(),
        _ => risk,
    }
}

/// Returns the risk once the outcome of the call is known.
#[must_use]
pub fn of_outcome(risk: RiskLevel, status: CallStatus) -> RiskLevel {
    if status.is_refusal() { risk.max(RiskLevel::Medium) } else { risk }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::{Principal, Proof};

    /// Proves G-26.
    #[test]
    fn a_tool_that_reads_is_a_low_risk_and_one_that_destroys_a_high_one() {
        let known = Caller::of(Principal::named("ada"), Proof::Token, "http");
        let nobody = Caller::anonymous("http");
        let reads = br#"{"name":"a","annotations":{"readOnlyHint":true}}"#;
        let destroys = br#"{"name":"a","annotations":{"readOnlyHint":true,"destructiveHint":true}}"#;
        for (definition, of_known, of_nobody) in [
            (Some(&reads[..]), RiskLevel::Low, RiskLevel::Medium),
            (Some(&destroys[..]), RiskLevel::High, RiskLevel::High),
            (Some(&b"{}"[..]), RiskLevel::Medium, RiskLevel::High),
            (None, RiskLevel::Medium, RiskLevel::High),
        ] {
            assert_eq!(of_call(of_definition(definition), &known), of_known);
            assert_eq!(of_call(of_definition(definition), &nobody), of_nobody);
        }
        assert_eq!(of_outcome(RiskLevel::Low, CallStatus::Denied), RiskLevel::Medium);
        assert_eq!(of_outcome(RiskLevel::Low, CallStatus::Success), RiskLevel::Low);
    }
}
