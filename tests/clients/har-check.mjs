// Validates a HAR file with npm har-validator. Prints {"entries": N} or {"errors": [...]}.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.env.MCP_TEST_DEPS}/har/`);
const har = JSON.parse(readFileSync(process.argv[2], "utf8"));
try {
  await require("har-validator").har(har);
  console.log(JSON.stringify({ entries: har.log.entries.length }));
} catch (error) {
  console.log(JSON.stringify({ errors: error.errors ?? [String(error)] }));
}
