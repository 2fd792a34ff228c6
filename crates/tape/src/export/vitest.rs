//! A test for vitest that has `signalbox replay serve` serve the tape and expects the recorded answers.

use super::calls::{Call, Calls, ExportTarget, Step, origin};
use super::quoting::javascript;
use super::{ExportError, Source};
use signalbox_wire::Era;
use std::io::Write;

const BEGINNING: &str = r#"import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const SIGNALBOX = process.env.SIGNALBOX || 'signalbox';
const TAPE = process.env.TAPE || @TAPE@;

const request = (client, method, params) => client.request({ method, params }, ResultSchema);

// Without what belongs to one exchange of messages rather than to what was asked for.
const plain = ({ _meta, ...rest }) => rest;

"#;

/// Writes the test: one for each call, in order, on one connection.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    writeln!(to, "// {}", origin(source.info))?;
    let name = javascript(&format!("the calls of tape {}", source.info.id));
    to.write_all(BEGINNING.replacen("@TAPE@", &javascript(&target.tape), 1).as_bytes())?;
    writeln!(to, "describe({name}, {{ concurrent: false }}, () => {{")?;
    writeln!(
        to,
        "  const client = new Client({{ name: 'signalbox-export', version: '{}' }});",
        env!("CARGO_PKG_VERSION")
    )?;
    writeln!(
        to,
        "  beforeAll(() => client.connect(new StdioClientTransport({{ command: SIGNALBOX, args: ['replay', 'serve', TAPE], env: process.env }})));"
    )?;
    writeln!(to, "  afterAll(() => client.close());")?;
    for step in Calls::new(source) {
        match step? {
            Step::Open(_) => {}
            Step::Call(call) => self::call(&call, &mut to)?,
            Step::Left { number, why } => writeln!(to, "\n  // {number} is left out: {why}")?,
        }
    }
    writeln!(to, "}});")?;
    Ok(to.flush()?)
}

fn call(call: &Call, to: &mut impl Write) -> Result<(), ExportError> {
    let expected = match (call.result(), call.error_code()) {
        (Some(result), _) if call.revision.era() == Era::Legacy => {
            format!("expect(plain(await answer)).toMatchObject(plain(JSON.parse({})));", javascript(result))
        }
        // The client of the test speaks the old era, in which a result has other members.
        (Some(_), _) => "expect(await answer).toBeDefined();".to_owned(),
        (None, Some(code)) => format!("await expect(answer).rejects.toMatchObject({{ code: {code} }});"),
        (None, None) => return Ok(writeln!(to, "\n  // {} is left out: it has no answer on the tape", call.title)?),
    };
    let (name, method) = (javascript(&call.title), javascript(&call.method));
    let params =
        call.member("params").map_or_else(|| "{}".to_owned(), |params| format!("JSON.parse({})", javascript(params)));
    writeln!(to, "\n  test({name}, async () => {{")?;
    writeln!(to, "    const answer = request(client, {method}, plain({params}));\n    {expected}\n  }});")?;
    Ok(())
}
