//! Bad files, each with the exact message it gives.

mod backends;
mod gateway;

use super::message;

fn assert_refused(files: &[(&str, &str)]) {
    for (text, expected) in files {
        assert_eq!(message("signalbox.toml", text), *expected, "{text}");
    }
}

#[test]
fn other_tables_and_bad_toml_are_refused() {
    assert_refused(TOML);
}

const TOML: &[(&str, &str)] = &[
    (
        "[record]\npostgres = 'postgres://ann:s3cret@db/t?sslmode=always'\n",
        "signalbox.toml:2:12: record.postgres: cannot be used: sslmode is one of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`",
    ),
    (
        "[record]\npostgres = 'postgres://ann:s3cret@db/t?sslmode=verify-full'\n",
        "signalbox.toml:2:12: record.postgres: cannot be used: sslmode=verify-ca and sslmode=verify-full need sslrootcert, a file with the authorities that sign servers' certificates",
    ),
    ("[backend.files]\ncommand = 'a'\n", "signalbox.toml:1:2: backend: unknown key; did you mean `backends`?"),
    (
        "colour = 1\n",
        "signalbox.toml:1:1: colour: unknown key; expected one of `mcp`, `gateway`, `backends`, `rules`, `tools`, `permissions`, `roles`, `kill_switch`, `constraints`, `limits`, `record`, `relay`, `seal`, `auth` or `guard`",
    ),
    // SO-9: the bounds of a tape.
    (
        "[record]\nmax_tape_size = 0\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found `0`",
    ),
    (
        "[record]\nmax_tape_size = 65535\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found `65535`",
    ),
    (
        "[record]\nmax_tape_size = '100 MB'\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found a string",
    ),
    (
        "[record]\nmax_tape_age = 0\n",
        "signalbox.toml:2:16: record.max_tape_age: expected a time such as \"30s\", from 0.001 to 2592000 seconds, found `0`",
    ),
    (
        "[record]\nmax_tape_age = '59s'\n",
        "signalbox.toml:2:1: record.max_tape_age: expected a time of at least \"1m\", found `59s`",
    ),
    (
        "[record]\nbaseline = 'x.tape'\nbaseline_ignore = ['/result/at', 'id']\n",
        "signalbox.toml:3:34: record.baseline_ignore[1]: expected a path such as `/result/content/*/text`, found `id`",
    ),
    (
        "[record]\nbaseline_ignore = ['/result/at']\n",
        "signalbox.toml:2:1: record.baseline_ignore: applies only with `baseline`; remove it",
    ),
    (
        "[record]\nbaseline = 'x.tape'\nbaseline_tolerance = 2\n",
        "signalbox.toml:3:22: record.baseline_tolerance: expected a number from 0 to 1, found `2`",
    ),
    (
        "[tools.'files/']\nversion = '1'\n",
        "signalbox.toml:1:8: tools.\"files/\": expected a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`",
    ),
    (
        "[tools.files]\ntrust_level = 'full'\n",
        "signalbox.toml:2:15: tools.files.trust_level: expected `system`, `verified`, `community` or `untrusted`, found `full`",
    ),
    (
        "[tools.files]\npermissions = ['read']\n",
        "signalbox.toml:2:16: tools.files.permissions[0]: expected a permission like `read:filesystem`, found `read`",
    ),
    (
        "[tools.files]\ncategories = ['']\n",
        "signalbox.toml:2:15: tools.files.categories[0]: expected a word of 1 to 64 bytes, found an empty string",
    ),
    ("a = \n", r#"signalbox.toml:1:5: not valid TOML: expected a value; strings need quotes, like "text""#),
    ("[backends.a\ncommand = 1\n", "signalbox.toml:1:12: not valid TOML: unclosed table, expected `]`"),
    ("[backends.a]\ncommand = \"x\n", r#"signalbox.toml:2:13: not valid TOML: invalid basic string, expected `"`"#),
    (
        "[backends.a]\ncommand = npx\n",
        r#"signalbox.toml:2:11: not valid TOML: expected a value; strings need quotes, like "text""#,
    ),
    (
        "[backends.a]\ncommand = 'x'\nargs = ['a'\ncommand = 'y'\n",
        "signalbox.toml:4:1: not valid TOML: missing comma between array elements, expected `,`",
    ),
    (
        "\"\\u001b[31m\" = 1\n",
        "signalbox.toml:1:1: \"\\u{1b}[31m\": unknown key; expected one of `mcp`, `gateway`, `backends`, `rules`, `tools`, `permissions`, `roles`, `kill_switch`, `constraints`, `limits`, `record`, `relay`, `seal`, `auth` or `guard`",
    ),
];
