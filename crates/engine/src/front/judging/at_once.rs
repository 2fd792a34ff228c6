//! Messages that cannot wait: those in the middle of a call, and notifications.

use super::{InterceptorScope, JudgedContext};
use crate::chain::{HoldAnswer, HoldQuestion, HoldResponse, Phase, Resume, Ruling, Verdict};
use crate::command::Command;
use crate::fault::{Fault, FaultKind};
use crate::front::{Context, FrontMachine};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::Envelope;

/// Maximum number of holds skipped for a message that cannot wait before it is refused.
const MAX_HOLDS: usize = 1100;

/// Verdict on a message that cannot wait.
pub(in crate::front) enum InstantVerdict {
    /// The message continues in this form.
    Pass(Envelope),
    /// The request is answered with this result.
    Answered(Bytes),
    /// The request is answered with this error object.
    Failed(Bytes),
    /// The message is refused.
    Refused(Fault),
}

impl FrontMachine {
    /// Judges a message that cannot wait. A pause ends at once, so that the remaining interceptors run too. If a person
    /// or a webhook would have to be asked, the message is refused.
    pub(in crate::front) fn consult_at_once(
        &self,
        phase: Phase,
        about: (Option<ExchangeId>, Option<&str>),
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> InstantVerdict {
        let go_on = HoldAnswer::GoOn { by: None };
        let (mut changed, mut resume, mut copies) = (None, None, Vec::new());
        for _ in 0..MAX_HOLDS {
            let current = changed.as_ref().unwrap_or(message);
            let ((exchange, backend), scope) = (about, InterceptorScope::All);
            let about =
                JudgedContext { phase, exchange, instead: None, backend, can_wait: false, by_task: false, scope };
            let judged = self.consult(about, current, resume, ctx, out);
            copies.extend(judged.effects);
            if matches!(judged.verdict, Verdict::Pass | Verdict::Modify(_) | Verdict::Reply(_)) {
                self.copy(exchange, std::mem::take(&mut copies), ctx, out);
            }
            match judged.verdict {
                Verdict::Hold(hold) => {
                    if let HoldQuestion::Work(work) = &hold.question {
                        work.run();
                    } else if !matches!(hold.question, HoldQuestion::Pause(_)) && !self.was_consulted(exchange, phase) {
                        return InstantVerdict::Refused(self.cannot_wait(exchange, phase, &hold.question, ctx, out));
                    }
                    resume = Some(Resume {
                        passed: judged.passed,
                        told: HoldResponse { cursor: hold.cursor, answer: &go_on },
                    });
                    changed = hold.message.or(changed);
                }
                Verdict::Pass => return InstantVerdict::Pass(changed.unwrap_or_else(|| message.clone())),
                Verdict::Modify(message) => return InstantVerdict::Pass(message),
                Verdict::Reply(result) => return InstantVerdict::Answered(result),
                Verdict::Error(error) => return InstantVerdict::Failed(error),
                Verdict::Refuse(fault) => return InstantVerdict::Refused(fault),
            }
        }
        InstantVerdict::Refused(Fault::new(
            FaultKind::Internal,
            "too many interceptors want to hold a message that cannot wait",
        ))
    }

    /// Returns true for a later round of a call that a person or a webhook let through when it began.
    fn was_consulted(&self, exchange: Option<ExchangeId>, phase: Phase) -> bool {
        phase == Phase::Request && exchange.and_then(|id| self.exchanges.get(&id)).is_some_and(|one| one.consulted)
    }

    fn cannot_wait(
        &self,
        exchange: Option<ExchangeId>,
        phase: Phase,
        question: &HoldQuestion,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Fault {
        let text = format!("a {} would have to be asked about this message, which cannot wait", question.word());
        if ctx.message_facts {
            let ruling = Ruling::of("refuse", text.clone());
            self.decided(exchange, phase.word(), [("gateway", ruling.into())], ctx, out);
        }
        Fault::new(FaultKind::Refused, text)
    }

    /// Judges a message in the middle of a call, which cannot wait. If it is refused, the call ends.
    pub(in crate::front) fn judge_midway(
        &mut self,
        id: ExchangeId,
        phase: Phase,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<Envelope> {
        if !self.exchanges.contains_key(&id) {
            return None;
        }
        if !ctx.chain.looks_at(phase) {
            return Some(message.clone());
        }
        let end = match self.consult_at_once(phase, (Some(id), None), message, ctx, out) {
            InstantVerdict::Pass(message) => return Some(message),
            InstantVerdict::Answered(result) => Verdict::Reply(result),
            InstantVerdict::Failed(error) => Verdict::Error(error),
            InstantVerdict::Refused(fault) => Verdict::Refuse(fault),
        };
        self.end_by(id, end, ctx, out);
        None
    }
}
