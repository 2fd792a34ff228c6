//! A test for Playwright that makes the calls over HTTP.

use super::calls::{Call, Calls, ExportTarget, INITIALIZED, Opening, Step, origin};
use super::k6::headers;
use super::quoting::javascript;
use super::{ExportError, Source};
use std::io::Write;

const BEGINNING: &str = r#"import { test, expect } from '@playwright/test';

const URL = process.env.MCP_URL || @URL@;

async function send(request, session, body, headers) {
  const all = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers };
  if (session) all['Mcp-Session-Id'] = session;
  return request.post(URL, { headers: all, data: body });
}

async function open(request, body, revision) {
  const answer = await send(request, '', body, {});
  expect(answer.status()).toBe(200);
  const session = answer.headers()['mcp-session-id'] || '';
  await send(request, session, @INITIALIZED@, { 'MCP-Protocol-Version': revision });
  return session;
}

// The answer to the request with this id, from a JSON body or from events.
async function call(request, session, id, body, headers) {
  const text = await (await send(request, session, body, headers)).text();
  const texts = text.trimStart().startsWith('{')
    ? [text]
    : text.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
  for (const text of texts.filter((text) => text.trim())) {
    const message = JSON.parse(text);
    if (JSON.stringify(message.id) === id) return message;
  }
  throw new Error(`no answer with id ${id} in ${text}`);
}

"#;

/// Writes the test. It makes all calls in order and expects each to end as it did on the tape: with a result, with a
/// result that reports a tool error, or with an error of the same code.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    writeln!(to, "// {}", origin(source.info))?;
    let name = javascript(&format!("the calls of tape {}", source.info.id));
    let beginning =
        BEGINNING.replacen("@INITIALIZED@", &javascript(INITIALIZED), 1).replacen("@URL@", &javascript(&target.url), 1);
    writeln!(to, "{beginning}test({name}, async ({{ request }}) => {{")?;
    for step in Calls::new(source) {
        match step? {
            Step::Open(opening) => open(&opening, &mut to)?,
            Step::Call(call) => self::call(&call, &mut to)?,
            Step::Left { number, why } => writeln!(to, "  // {number} is left out: {why}")?,
        }
    }
    writeln!(to, "}});")?;
    Ok(to.flush()?)
}

fn open(opening: &Opening, to: &mut impl Write) -> Result<(), ExportError> {
    let (body, revision) = (javascript(&opening.body()), javascript(opening.revision.as_str()));
    Ok(writeln!(to, "  const session_{} = await open(request, {body}, {revision});", opening.session)?)
}

fn call(call: &Call, to: &mut impl Write) -> Result<(), ExportError> {
    let redacted = if call.redacted { "    // Secrets were taken out of it.\n" } else { "" };
    let session = call.session.map_or_else(|| "''".to_owned(), |session| format!("session_{session}"));
    let (name, id, body) =
        (javascript(&call.title), javascript(call.member("id").unwrap_or("null")), javascript(&call.body));
    writeln!(to, "  await test.step({name}, async () => {{")?;
    writeln!(to, "{redacted}    const answer = await call(request, {session}, {id}, {body}, {});", headers(call))?;
    match call.error_code() {
        Some(code) => writeln!(to, "    expect(answer.error?.code).toBe({code});")?,
        None if call.result().is_some() => {
            let failed = call.result().is_some_and(is_tool_error);
            writeln!(to, "    expect(answer.result).toBeDefined();")?;
            writeln!(to, "    expect(answer.result.isError ?? false).toBe({failed});")?;
        }
        None => {}
    }
    Ok(writeln!(to, "  }});")?)
}

fn is_tool_error(result: &str) -> bool {
    let span = signalbox_wire::json::member(result.as_bytes(), "isError");
    span.is_some_and(|span| span.of(result.as_bytes()) == b"true")
}
