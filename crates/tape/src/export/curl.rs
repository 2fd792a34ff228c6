//! A shell script that repeats the calls with curl.

use super::calls::{Call, Calls, ExportTarget, INITIALIZED, Opening, Step, origin};
use super::quoting::shell;
use super::{ExportError, Source};
use std::io::Write;

const BEGINNING: &str = r#"set -euo pipefail

url=${MCP_URL:-@URL@}

# send SESSION BODY HEADER...: sends one message and prints the answer.
send() {
  local session=$1 body=$2
  shift 2
  local headers=()
  if [ -n "$session" ]; then headers+=(-H "Mcp-Session-Id: $session"); fi
  local header
  for header in "$@"; do headers+=(-H "$header"); done
  printf '%s' "$body" | curl -sS -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    ${headers[@]+"${headers[@]}"} --data-binary @- "$url"
  echo
}

# open BODY REVISION: opens a session and prints its id, which is empty if the server has none.
open() {
  local head
  head=$(mktemp)
  printf '%s' "$1" | curl -sS --fail-with-body -D "$head" -o /dev/null -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' --data-binary @- "$url"
  local session
  session=$(sed -n 's/^[Mm][Cc][Pp]-[Ss][Ee][Ss][Ss][Ii][Oo][Nn]-[Ii][Dd]: *//p' "$head" | tr -d '\r\n')
  rm -f "$head"
  send "$session" @INITIALIZED@ "MCP-Protocol-Version: $2" >&2
  printf '%s' "$session"
}
"#;

/// Writes the script.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    writeln!(to, "#!/usr/bin/env bash\n# {}", origin(source.info))?;
    let beginning =
        BEGINNING.replacen("@INITIALIZED@", &shell(INITIALIZED), 1).replacen("@URL@", &shell(&target.url), 1);
    to.write_all(beginning.as_bytes())?;
    for step in Calls::new(source) {
        match step? {
            Step::Open(opening) => open(&opening, &mut to)?,
            Step::Call(call) => self::call(&call, &mut to)?,
            Step::Left { number, why } => writeln!(to, "\n# {number} is left out: {why}")?,
        }
    }
    Ok(to.flush()?)
}

fn open(opening: &Opening, to: &mut impl Write) -> Result<(), ExportError> {
    let (session, revision) = (opening.session, opening.revision.as_str());
    Ok(writeln!(to, "\nsession_{session}=$(open {} {})", shell(&opening.body()), shell(revision))?)
}

fn call(call: &Call, to: &mut impl Write) -> Result<(), ExportError> {
    let redacted = if call.redacted { "; secrets were taken out of it" } else { "" };
    let session = call.session.map_or_else(|| "''".to_owned(), |session| format!("\"$session_{session}\""));
    write!(to, "\n# {}{redacted}\nsend {session} {}", call.title, shell(&call.body))?;
    for (name, value) in call.headers() {
        write!(to, " {}", shell(&format!("{name}: {value}")))?;
    }
    Ok(writeln!(to)?)
}
