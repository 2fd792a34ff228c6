//! A load test for k6.

use super::calls::{Call, Calls, ExportTarget, INITIALIZED, Opening, Step, origin};
use super::quoting::javascript;
use super::{ExportError, Source};
use std::io::Write;

const BEGINNING: &str = r#"import http from 'k6/http';
import { check, fail } from 'k6';

const URL = __ENV.MCP_URL || @URL@;

function send(session, body, headers) {
  const all = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers };
  if (session) all['Mcp-Session-Id'] = session;
  return http.post(URL, body, { headers: all });
}

function open(body, revision) {
  const answer = send('', body, {});
  if (answer.status !== 200) fail(`the session was not opened: ${answer.status} ${answer.body}`);
  const name = Object.keys(answer.headers).find((name) => name.toLowerCase() === 'mcp-session-id');
  const session = name ? answer.headers[name] : '';
  send(session, @INITIALIZED@, { 'MCP-Protocol-Version': revision });
  return session;
}

// The answer to the request with this id, from a JSON body or from events.
function answerOf(response, id) {
  const body = String(response.body);
  const texts = body.trimStart().startsWith('{')
    ? [body]
    : body.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
  for (const text of texts) {
    try {
      const message = JSON.parse(text);
      if (JSON.stringify(message.id) === id) return message;
    } catch (error) {
      // Events without data, and pages of errors.
    }
  }
  return {};
}

function call(name, session, id, body, headers, ends) {
  const response = send(session, body, headers);
  const answer = answerOf(response, id);
  check(answer, { [name]: (answer) => ends in answer }, { call: name });
}

export default function () {
"#;

/// Writes the script. Each iteration makes all calls and checks that each ends as it did on the tape, with a result or
/// with an error.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    writeln!(to, "// {}", origin(source.info))?;
    let beginning =
        BEGINNING.replacen("@INITIALIZED@", &javascript(INITIALIZED), 1).replacen("@URL@", &javascript(&target.url), 1);
    to.write_all(beginning.as_bytes())?;
    for step in Calls::new(source) {
        match step? {
            Step::Open(opening) => open(&opening, &mut to)?,
            Step::Call(call) => self::call(&call, &mut to)?,
            Step::Left { number, why } => writeln!(to, "  // {number} is left out: {why}")?,
        }
    }
    writeln!(to, "}}")?;
    Ok(to.flush()?)
}

fn open(opening: &Opening, to: &mut impl Write) -> Result<(), ExportError> {
    let (body, revision) = (javascript(&opening.body()), javascript(opening.revision.as_str()));
    Ok(writeln!(to, "  const session_{} = open({body}, {revision});", opening.session)?)
}

fn call(call: &Call, to: &mut impl Write) -> Result<(), ExportError> {
    let redacted = if call.redacted { "  // secrets were taken out of it\n" } else { "" };
    let session = call.session.map_or_else(|| "''".to_owned(), |session| format!("session_{session}"));
    let ends = if call.error_code().is_some() { "error" } else { "result" };
    let (name, id, body) =
        (javascript(&call.title), javascript(call.member("id").unwrap_or("null")), javascript(&call.body));
    Ok(writeln!(to, "{redacted}  call({name}, {session}, {id}, {body}, {}, '{ends}');", headers(call))?)
}

/// Returns the headers of a call as a JavaScript object.
pub(super) fn headers(call: &Call) -> String {
    let pairs: Vec<String> =
        call.headers().iter().map(|(name, value)| format!("'{name}': {}", javascript(value))).collect();
    format!("{{ {} }}", pairs.join(", "))
}
