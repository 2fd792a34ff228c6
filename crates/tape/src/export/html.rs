//! A report to mail to people: one file that needs no network, is readable without scripts and better with them.

mod proof;

use super::{ExportError, Source};
use crate::gather::{Gather, Piece};
use crate::marks;
use crate::pretty;
use crate::story::{self, Story};
use crate::times::{millis, rfc3339};
use proof::Proof;
use signalbox_engine::record::{BackendOffer, Content, DecisionEntry, Entry, MessageEntry, TapeInfo};
use signalbox_wire::printable;
use std::io::Write;

/// Maximum number of bytes of a message that are shown.
const MAX_SHOWN: usize = 32 << 10;

/// Limits on the size of a report.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Approximate maximum size in bytes. Exchanges beyond it are only counted.
    pub bytes: usize,
    /// Maximum number of exchanges.
    pub exchanges: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: 32 << 20, exchanges: 20_000 }
    }
}

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// Writes the report.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, bounds: Bounds, mut to: impl Write) -> Result<(), ExportError> {
    begin(source.info, &mut to)?;
    let (mut written, mut shown, mut left, mut gaps) = (0, 0, 0u64, 0u64);
    // Exchanges arrive in the order in which they ended; the report has them in the order in which they began.
    let mut parts: Vec<(u64, String)> = Vec::new();
    let mut proof = Proof::new(source.info, source.sessions, bounds.bytes)?;
    let mut entries = source.entries.inspect(|entry| entry.iter().for_each(|entry| proof.add(entry)));
    for piece in Gather::new(&mut entries) {
        let (place, part) = match piece? {
            Piece::Exchange(entries) => match Story::new(&entries) {
                Some(_) if written >= bounds.bytes || shown >= bounds.exchanges => {
                    left += 1;
                    continue;
                }
                Some(story) => (entries.first().map_or(0, |first| first.seq), exchange(&story)),
                None => continue,
            },
            Piece::Loose(entry) => {
                if let Content::Gap(gap) = &entry.content {
                    gaps += gap.facts;
                }
                if written >= bounds.bytes {
                    continue;
                }
                (entry.seq, loose(&entry))
            }
        };
        shown += 1;
        written += part.len();
        parts.push((place, part));
    }
    parts.sort_by_key(|(place, _)| *place);
    for (_, part) in parts {
        to.write_all(part.as_bytes())?;
    }
    drop(entries);
    end(left, gaps, &proof, &mut to)
}

fn begin(info: &TapeInfo, to: &mut impl Write) -> Result<(), ExportError> {
    let redaction = match info.redaction.is_empty() {
        true => "every byte was kept".to_owned(),
        false => info.redaction.iter().map(|rule| escape(rule)).collect::<Vec<_>>().join("<br>"),
    };
    let ended = info.ended.map_or_else(|| "still recording, or not closed cleanly".to_owned(), rfc3339);
    write!(
        to,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>Tape {id}</title><style>{STYLE}</style></head><body>\n\
<h1>Tape {id}</h1><dl><dt>Made by</dt><dd>signalbox {kind} {program}, {target}</dd><dt>Began</dt><dd>{began}</dd>\
<dt>Ended</dt><dd>{ended}</dd><dt>Recorded</dt><dd>{sampling}</dd><dt>Taken out</dt><dd><details><summary>{rules} rules</summary>\
{redaction}</details></dd></dl>\n\
<p id=\"tools\" hidden><input id=\"filter\" type=\"search\" placeholder=\"Filter by any word\" aria-label=\"Filter\">\
<label><input id=\"bad\" type=\"checkbox\"> only calls that did not succeed</label> <span id=\"count\"></span></p>\n<main>\n",
        id = escape(&info.id),
        kind = info.kind.word(),
        program = escape(&info.program),
        target = escape(&info.target),
        began = rfc3339(info.started),
        sampling = escape(&info.sampling),
        rules = info.redaction.len(),
    )?;
    Ok(())
}

fn end(left: u64, gaps: u64, proof: &Proof, to: &mut impl Write) -> Result<(), ExportError> {
    to.write_all(b"</main>\n")?;
    if gaps > 0 {
        writeln!(to, "<p class=\"note\">{gaps} facts are missing from this tape; the gaps are marked above.</p>")?;
    }
    if left > 0 {
        writeln!(to, "<p class=\"note\">{left} more exchanges did not fit into this report.</p>")?;
    }
    to.write_all(proof.html().as_bytes())?;
    writeln!(to, "<script>{SCRIPT}</script></body></html>")?;
    Ok(to.flush()?)
}

fn exchange(story: &Story<'_>) -> String {
    let class = if story.is_good() { "good" } else { "bad" };
    let session = story.session.map(|number| format!("session {number}")).unwrap_or_default();
    let mut out = format!(
        "<details class=\"exchange {class}\" id=\"x{}\"><summary><span class=\"number\">{}</span> <time>{}</time> <b>{}</b> <span class=\"subject\">{}</span> \
<span class=\"outcome\">{}</span> <span class=\"took\">{}</span> <span class=\"who\">{} {} {}</span></summary>\n",
        story.number,
        story.number,
        rfc3339(story.began),
        escape(story.method),
        escape(story.subject.unwrap_or_default()),
        escape(story.outcome),
        millis(story.took),
        escape(story.principal),
        escape(story.backend.unwrap_or_default()),
        session,
    );
    for entry in story.entries {
        let when = millis(entry.at.saturating_sub(story.began));
        match &entry.content {
            Content::Message(message) => out.push_str(&image(&when, message)),
            Content::Decisions(list) => list.iter().for_each(|decision| out.push_str(&decided(&when, decision))),
            Content::Lost(_) => out.push_str(&loose(entry)),
            _ => {}
        }
    }
    if let Some((first, round)) = story.finished.and_then(|end| Some((end.operation?, end.round))) {
        out.push_str(&format!(
            "<p class=\"note\">round {round} of the operation that began with exchange {first}</p>\n"
        ));
    }
    out.push_str("</details>\n");
    out
}

fn backend(when: &str, seen: &BackendOffer) -> String {
    let mut out = format!(
        "<details><summary><time>{when}</time> backend {} {} offers {}</summary>",
        escape(&seen.backend),
        escape(seen.revision.as_deref().unwrap_or_default()),
        escape(&seen.hash)
    );
    for (name, part) in &seen.parts {
        let text = String::from_utf8_lossy(part);
        out.push_str(&format!("<h3>{}</h3><pre>{}</pre>", escape(name), escape(shown_part(&text))));
    }
    for name in &seen.left {
        out.push_str(&format!("<p class=\"note\">{} was too large to be kept</p>", escape(name)));
    }
    out + "</details>"
}

/// Returns as much of a text as is shown.
fn shown_part(text: &str) -> &str {
    let mut cut = text.len().min(MAX_SHOWN);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    text.get(..cut).unwrap_or_default()
}

fn loose(entry: &Entry) -> String {
    let when = rfc3339(entry.at);
    let session = entry.session.unwrap_or_default();
    let text = match &entry.content {
        Content::Message(message) => image(&when, message),
        Content::Decisions(list) => list.iter().map(|decision| decided(&when, decision)).collect(),
        Content::Session(info) => {
            let client = info.client.as_deref().unwrap_or("a client");
            let revision = info.revision.as_deref().unwrap_or("an unknown revision");
            format!(
                "<p><time>{when}</time> session {session}: {} by {}, {}</p>",
                escape(client),
                escape(&info.transport),
                escape(revision)
            )
        }
        Content::SessionEnded => format!("<p><time>{when}</time> session {session} ended</p>"),
        Content::Gap(gap) => {
            format!("<p class=\"gap\"><time>{when}</time> {} facts are missing: {}</p>", gap.facts, escape(&gap.reason))
        }
        Content::Client(client) => {
            let (number, who) = (client.number, escape(&marks::caller(&client.info)));
            format!("<p><time>{when}</time> caller {number}, for {}: {who}</p>", escape(&entry.principal))
        }
        Content::Backend(seen) => backend(&when, seen),
        Content::Rules(rules) => format!(
            "<details><summary><time>{when}</time> rules {} apply from here on</summary><pre>{}</pre></details>",
            escape(&rules.hash),
            escape(&rules.text)
        ),
        Content::Lost(lost) => format!(
            "<p class=\"gap\"><time>{when}</time> message {} ({}) did not arrive after all: {}</p>",
            lost.number,
            lost.point.words(),
            escape(&lost.reason)
        ),
        Content::Refused(refused) => {
            format!("<p class=\"gap\"><time>{when}</time> {}</p>", escape(&marks::refused(refused)))
        }
        Content::Finished(_) => String::new(),
    };
    format!("<div class=\"loose\">{text}</div>\n")
}

fn image(when: &str, message: &MessageEntry) -> String {
    let backend = message.backend.as_ref().map(|name| format!(" ({})", escape(name))).unwrap_or_default();
    let code = message.error_code.map(|code| format!(" {code}")).unwrap_or_default();
    let marks: String = marks::of(message).iter().map(|mark| format!(", {}", escape(mark))).collect();
    let head = format!(
        "<h3><time>{when}</time> {}{backend}: {}{code}, {} bytes{marks}</h3>",
        message.point.words(),
        message.kind.word(),
        message.length
    );
    let Some(text) = story::text(message) else { return format!("{head}<p class=\"note\">not kept</p>\n") };
    let shown = shown_part(&text);
    let more = text.len() - shown.len();
    let more = if more > 0 { format!("<p class=\"note\">and {more} more bytes</p>") } else { String::new() };
    // Bodies that are not JSON, such as error pages, are shown unchanged.
    let indented = if shown.trim_start().starts_with(['{', '[']) { pretty(shown) } else { shown.to_owned() };
    format!("{head}<pre>{}</pre>{more}\n", escape(&indented))
}

fn decided(when: &str, decision: &DecisionEntry) -> String {
    let rule = decision.rule.as_ref().map(|rule| format!(", rule <code>{}</code>", escape(rule))).unwrap_or_default();
    let mut out = format!(
        "<h3 class=\"decision\"><time>{when}</time> {}{rule}: <b>{}</b> {}{}</h3><ul>",
        escape(&decision.by),
        escape(&decision.verdict),
        escape(&decision.detail),
        if decision.redacted { ", redacted" } else { "" }
    );
    for (condition, held) in decision.conditions.iter() {
        let sign = if *held { "held" } else { "did not hold" };
        out.push_str(&format!("<li>{sign}: {}</li>", escape(condition)));
    }
    for (input, value) in &decision.inputs {
        out.push_str(&format!("<li>used {}: <code>{}</code></li>", escape(input), escape(value)));
    }
    out.push_str("</ul>\n");
    out
}

/// Escapes a text for HTML, both as content and in attributes. Characters that are invisible, or that move others, are
/// shown as escapes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in printable::lines(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
