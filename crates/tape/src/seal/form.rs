//! Canonical form of an entry and of the head of a tape. The chain is computed from it, independent of the store.

use signalbox_engine::fact::{Point, TransportData};
use signalbox_engine::record::{
    BackendOffer, Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, SessionInfo, TapeInfo,
};
use signalbox_seal::canonical::{ArrayEncoder, EncodeError, Encoder};
use signalbox_seal::{ChainHash, Profile};

/// First item of the form of a head.
const FORMAT: &str = "signalbox-tape/1";

type EncodeResult = Result<(), EncodeError>;
type Items<'a> = ArrayEncoder<'a>;

/// Appends the form of an entry to `out`. The commitment stands for the body of a message.
pub(super) fn entry(entry: &Entry, body: Option<&ChainHash>, out: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::after(Profile::Two, out);
    encoder.value().array(|items| {
        items.item().unsigned(entry.seq);
        items.item().unsigned(entry.at);
        number(items, entry.session);
        number(items, entry.exchange);
        items.item().text(&entry.principal);
        content(items, &entry.content, body)
    })?;
    encoder.finish()
}

/// Returns the form of a head.
pub(super) fn head(tape: &TapeInfo, commit: &[String]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::with_capacity(Profile::Two, 256);
    encoder.value().array(|items| {
        items.item().text(FORMAT);
        items.item().text(&tape.id);
        items.item().text(tape.kind.word());
        items.item().text(&tape.target);
        items.item().unsigned(tape.started);
        items.item().text(&tape.program);
        // Stores keep the rules as lines of one text.
        items.item().text(&tape.redaction.join("\n").lines().collect::<Vec<_>>().join("\n"));
        items.item().text(&tape.sampling);
        text(items, tape.parent.as_deref());
        texts(items, commit.iter().map(String::as_str))
    })?;
    encoder.finish()
}

fn content(items: &mut Items<'_>, content: &Content, body: Option<&ChainHash>) -> EncodeResult {
    match content {
        Content::Session(info) => {
            items.item().text("session");
            session(items, info)
        }
        Content::SessionEnded => {
            items.item().text("session_ended");
            Ok(())
        }
        Content::Message(told) => message(items, told, body),
        Content::Decisions(list) => {
            items.item().text("decisions");
            items.item().array(|all| list.iter().try_for_each(|one| all.item().array(|items| decision(items, one))))
        }
        Content::Finished(told) => finished(items, told),
        Content::Gap(gap) => {
            items.item().text("gap");
            items.item().unsigned(gap.facts);
            items.item().text(&gap.reason);
            Ok(())
        }
        Content::Client(client) => {
            items.item().text("client");
            items.item().unsigned(client.number);
            session(items, &client.info)
        }
        Content::Backend(seen) => backend(items, seen),
        Content::Rules(rules) => {
            items.item().text("rules");
            items.item().text(&rules.hash);
            items.item().text(&rules.text);
            items.item().bool(rules.redacted);
            Ok(())
        }
        Content::Lost(lost) => {
            items.item().text("lost");
            items.item().unsigned(lost.number);
            items.item().unsigned(point(lost.point));
            items.item().text(&lost.reason);
            Ok(())
        }
        Content::Refused(refused) => {
            items.item().text("refused");
            number(items, refused.status.map(u64::from));
            items.item().text(&refused.reason);
            items.item().text(&refused.detail);
            number(items, refused.client);
            Ok(())
        }
    }
}

fn message(items: &mut Items<'_>, message: &MessageEntry, body: Option<&ChainHash>) -> EncodeResult {
    items.item().text("message");
    items.item().unsigned(point(message.point));
    items.item().text(message.kind.word());
    text(items, message.method.as_deref());
    text(items, message.subject.as_deref());
    text(items, message.backend.as_deref());
    match message.error_code {
        Some(code) => items.item().signed(code),
        None => items.item().null(),
    }
    items.item().unsigned(message.length);
    items.item().unsigned(message.number);
    items.item().bool(message.own);
    items.item().unsigned(message.again.map_or(0, std::num::NonZeroU64::get));
    text(items, message.lost.as_deref());
    items.item().bool(message.redacted);
    carried(items, message.carried.as_deref())?;
    match body {
        Some(commitment) => items.item().bytes(commitment),
        None => items.item().null(),
    }
    Ok(())
}

fn carried(items: &mut Items<'_>, carried: Option<&TransportData>) -> EncodeResult {
    text(items, carried.and_then(|carried| carried.event_id.as_deref()));
    let Some(http) = carried.and_then(|carried| carried.http.as_ref()) else {
        items.item().null();
        return Ok(());
    };
    items.item().array(|items| {
        text(items, http.method.as_deref());
        text(items, http.url.as_deref());
        number(items, http.status.filter(|status| *status > 0).map(u64::from));
        pairs(items, http.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
        items.item().bool(http.redacted);
        Ok(())
    })
}

fn decision(items: &mut Items<'_>, decision: &DecisionEntry) -> EncodeResult {
    items.item().text(&decision.by);
    text(items, decision.rule.as_deref());
    items.item().text(&decision.phase);
    items.item().text(&decision.verdict);
    items.item().text(&decision.detail);
    items.item().array(|all| {
        decision.conditions.iter().try_for_each(|(text, held)| {
            all.item().array(|pair| {
                pair.item().text(text);
                pair.item().bool(*held);
                Ok(())
            })
        })
    })?;
    pairs(items, decision.inputs.iter().map(|(name, value)| (&**name, value.as_str())))?;
    items.item().bool(decision.redacted);
    Ok(())
}

fn finished(items: &mut Items<'_>, finished: &FinishedEntry) -> EncodeResult {
    items.item().text("finished");
    items.item().text(&finished.method);
    text(items, finished.subject.as_deref());
    text(items, finished.backend.as_deref());
    items.item().text(&finished.outcome);
    items.item().unsigned(finished.took);
    items.item().unsigned(finished.bytes_in);
    items.item().unsigned(finished.bytes_out);
    number(items, finished.operation);
    items.item().unsigned(finished.round.max(1).into());
    number(items, finished.client);
    items.item().bool(finished.redacted);
    Ok(())
}

fn session(items: &mut Items<'_>, info: &SessionInfo) -> EncodeResult {
    text(items, info.external.as_deref());
    text(items, info.client.as_deref());
    text(items, info.client_version.as_deref());
    text(items, info.revision.as_deref());
    items.item().text(&info.transport);
    text(items, info.proof.as_deref());
    pairs(items, info.claims.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    text(items, info.address.as_deref());
    Ok(())
}

fn backend(items: &mut Items<'_>, seen: &BackendOffer) -> EncodeResult {
    items.item().text("backend");
    items.item().text(&seen.backend);
    items.item().text(&seen.view);
    text(items, seen.revision.as_deref());
    items.item().text(&seen.hash);
    items.item().array(|all| {
        seen.parts.iter().try_for_each(|(name, bytes)| {
            all.item().array(|part| {
                part.item().text(name);
                part.item().bytes(bytes);
                Ok(())
            })
        })
    })?;
    texts(items, seen.left.iter().map(String::as_str))?;
    items.item().bool(seen.redacted);
    Ok(())
}

fn number(items: &mut Items<'_>, number: Option<u64>) {
    match number {
        Some(number) => items.item().unsigned(number),
        None => items.item().null(),
    }
}

fn text(items: &mut Items<'_>, text: Option<&str>) {
    match text {
        Some(text) => items.item().text(text),
        None => items.item().null(),
    }
}

fn texts<'t>(items: &mut Items<'_>, mut texts: impl Iterator<Item = &'t str>) -> EncodeResult {
    items.item().array(|all| {
        texts.try_for_each(|text| {
            all.item().text(text);
            Ok(())
        })
    })
}

fn pairs<'t>(items: &mut Items<'_>, mut pairs: impl Iterator<Item = (&'t str, &'t str)>) -> EncodeResult {
    items.item().array(|all| {
        pairs.try_for_each(|(name, value)| {
            all.item().array(|pair| {
                pair.item().text(name);
                pair.item().text(value);
                Ok(())
            })
        })
    })
}

/// Returns the number of a point, in the order in which a call passes them.
fn point(point: Point) -> u64 {
    match point {
        Point::ClientIn => 1,
        Point::BackendOut => 2,
        Point::BackendIn => 3,
        Point::ClientOut => 4,
    }
}
