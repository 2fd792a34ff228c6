//! The order in which everything that may change, answer, hold or refuse a message judges it.

use crate::govern_parts::GovernParts;
use crate::seal::Signatures;
use signalbox_engine::chain::{Chain, Interceptor};
use signalbox_rules::RuleInterceptor;
use signalbox_runtime::Breakpoints;
use std::sync::Arc;

/// Returns the interceptors in order. Requests pass them from top to bottom, answers from bottom to top.
#[must_use]
pub fn interceptor_chain(
    signatures: &Signatures,
    govern: &GovernParts,
    breakpoints: &Arc<Breakpoints>,
    rules: &Arc<RuleInterceptor>,
) -> Chain {
    let mut all: Vec<Arc<dyn Interceptor>> = Vec::new();
    // Verifies requests as they arrived, and signs answers as they leave.
    all.push(Arc::clone(&signatures.calls) as _);
    all.extend(govern.interceptors());
    // Rules judge a request after a person edited it, and a person sees an answer after the rules changed it.
    all.push(Arc::clone(breakpoints) as _);
    all.push(Arc::clone(rules) as _);
    // Answers pass these before rules, as backends sent them, and a result is held against its schema before it is
    // cleaned.
    // Flows and canaries see requests as backends get them, and results as they came.
    all.push(govern.guard().flow_check());
    all.push(govern.guard().canary_check());
    all.push(govern.guard().question_check());
    all.push(govern.guard().content_check());
    all.push(govern.guard().result_check());
    // Signs requests as the other interceptors left them, for gateways behind this one.
    all.push(Arc::clone(&signatures.forwards) as _);
    Chain::new(all)
}
