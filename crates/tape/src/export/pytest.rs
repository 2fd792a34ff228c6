//! A test for pytest that has `signalbox replay serve` serve the tape and expects the recorded answers.

use super::calls::{Call, Calls, ExportTarget, Step, origin};
use super::quoting::python;
use super::{ExportError, Source};
use signalbox_wire::{Era, json, method};
use std::io::Write;

const BEGINNING: &str = r#"# A test for pytest. It needs the package `mcp`, and `signalbox` in the path.
#
# @ORIGIN@
import asyncio
import json
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

try:
    from mcp.shared.exceptions import MCPError
except ImportError:
    from mcp.shared.exceptions import McpError as MCPError

SIGNALBOX = os.environ.get("SIGNALBOX", "signalbox")
TAPE = os.environ.get("TAPE", @TAPE@)


def holds(got, want, place="result"):
    """Asserts that everything that was recorded is there; a member that is null may be missing."""
    if isinstance(want, dict):
        assert isinstance(got, dict), f"{place}: {got!r} is no object"
        for name, value in want.items():
            if value is not None and name != "_meta":
                assert name in got, f"{place}.{name} is missing"
                holds(got[name], value, f"{place}.{name}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{place}: {got!r} is not {want!r}"
        for index, value in enumerate(want):
            holds(got[index], value, f"{place}[{index}]")
    else:
        assert got == want, f"{place}: {got!r} is not {want!r}"


async def expect(call, name, want):
    result = (await call).model_dump(by_alias=True, mode="json", exclude_none=True)
    holds(result, json.loads(want), name)


async def expect_error(call, name, code):
    try:
        await call
    except MCPError as error:
        got = getattr(error, "error", error).code
        assert got == code, f"{name}: error {got}, not {code}"
    else:
        raise AssertionError(f"{name}: no error, {code} was recorded")


def test_tape():
    asyncio.run(calls())


async def calls():
    server = StdioServerParameters(command=SIGNALBOX, args=["replay", "serve", TAPE], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
"#;

/// Writes the test: all calls in order, on one connection.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, target: &ExportTarget, mut to: impl Write) -> Result<(), ExportError> {
    let beginning =
        BEGINNING.replacen("@TAPE@", &python(&target.tape), 1).replacen("@ORIGIN@", &origin(source.info), 1);
    to.write_all(beginning.as_bytes())?;
    for step in Calls::new(source) {
        match step? {
            Step::Open(_) => {}
            Step::Call(call) => self::call(&call, &mut to)?,
            Step::Left { number, why } => writeln!(to, "        # {number} is left out: {why}")?,
        }
    }
    Ok(to.flush()?)
}

fn call(call: &Call, to: &mut impl Write) -> Result<(), ExportError> {
    let left = |to: &mut dyn Write, why: &str| Ok(writeln!(to, "        # {} is left out: {why}", call.title)?);
    let Some(made) = made(call) else { return left(to, "the client of the package has no method for it") };
    let name = python(&call.title);
    match (call.result(), call.error_code()) {
        // The client of the test may speak another revision, in which a result has other members.
        (Some(result), _) => {
            let result = if call.revision.era() == Era::Legacy { result } else { "{}" };
            Ok(writeln!(to, "        await expect({made}, {name}, {})", python(result))?)
        }
        (None, Some(code)) => Ok(writeln!(to, "        await expect_error({made}, {name}, {code})")?),
        (None, None) => left(to, "it has no answer on the tape"),
    }
}

/// Returns the call as the Python client makes it.
fn made(call: &Call) -> Option<String> {
    let text = |name| Some(python(&json::string(call.param(name)?.as_bytes())?));
    let with =
        |name| call.param(name).map_or_else(|| "None".to_owned(), |value| format!("json.loads({})", python(value)));
    Some(match &*call.method {
        method::PING => "session.send_ping()".to_owned(),
        method::TOOLS_CALL => format!("session.call_tool({}, {})", text("name")?, with("arguments")),
        method::PROMPTS_GET => format!("session.get_prompt({}, {})", text("name")?, with("arguments")),
        method::RESOURCES_READ => format!("session.read_resource({})", text("uri")?),
        method::TOOLS_LIST if call.param("cursor").is_none() => "session.list_tools()".to_owned(),
        method::PROMPTS_LIST if call.param("cursor").is_none() => "session.list_prompts()".to_owned(),
        method::RESOURCES_LIST if call.param("cursor").is_none() => "session.list_resources()".to_owned(),
        method::RESOURCES_TEMPLATES_LIST if call.param("cursor").is_none() => {
            "session.list_resource_templates()".to_owned()
        }
        _ => return None,
    })
}
