//! How much harm a call may mean (G-26), by what its tool says of itself and by how far its caller is trusted.

use crate::event::RiskLevel;
use crate::status::Status;
use signalbox_engine::Caller;
use signalbox_engine::standing::TrustLevel;
use signalbox_wire::json;

/// The risk of using a tool of this definition. What a tool says of itself is a hint: it lowers the risk to what reading means, and
/// raises it to what destroying means, and nothing is believed beyond that.
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

/// The risk of a call before it leaves, of a tool whose use has this risk.
#[must_use]
pub fn of_call(risk: RiskLevel, caller: &Caller) -> RiskLevel {
    match caller.identity().trust() {
        TrustLevel::Untrusted => risk.raised(),
        _ => risk,
    }
}

/// The risk once it is known how the call ended.
#[must_use]
pub fn of_outcome(risk: RiskLevel, status: Status) -> RiskLevel {
    if status.is_refusal() { risk.max(RiskLevel::Medium) } else { risk }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::{Principal, Proof};

    /// G-26: risk is assessed.
    #[test]
    fn g_26_a_tool_that_reads_is_a_low_risk_and_one_that_destroys_a_high_one() {
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
        assert_eq!(of_outcome(RiskLevel::Low, Status::Denied), RiskLevel::Medium);
        assert_eq!(of_outcome(RiskLevel::Low, Status::Success), RiskLevel::Low);
    }
}
