//! Defines the keys of the table `guard`.

use crate::key_parts::{count, key, one_of};
use crate::keys::{ConfigKey, KeyKind};

/// Word for a key that follows `guard.level`.
pub(crate) const BY_LEVEL: &str = "by_level";
const LEVELS: &[&str] = &["off", "observe", "standard", "strict"];
const SCHEMA_MODES: &[&str] = &[BY_LEVEL, "off", "report", "enforce"];

const CLEAN_MODES: &[&str] = &[BY_LEVEL, "off", "report", "clean"];
const INSTRUCTION_MODES: &[&str] = &[BY_LEVEL, "off", "report", "mark", "block"];

const SECRET_FORM_ACTIONS: &[&str] = &[BY_LEVEL, "off", "report", "block"];

const PIN_MODES: &[&str] = &[BY_LEVEL, "off", "report", "suspicious", "quarantine"];

const FILTER_ACTIONS: &[&str] = &[BY_LEVEL, "off", "report", "sanitise", "ask", "block"];

/// Every key of the table.
pub(crate) const GUARD_KEYS: &[ConfigKey] = &[
    key(
        "guard.level",
        one_of(LEVELS, "standard"),
        "What is done about what tools are told and say, where no other key says so: nothing, record it, refuse what is certainly wrong, or refuse what may be wrong. See docs/guard.md.",
    ),
    key(
        "guard.mode",
        one_of(&["enforce", "shadow"], "enforce"),
        "`shadow` records every decision of the guard and carries out none.",
    ),
    key(
        "guard.arguments",
        one_of(SCHEMA_MODES, BY_LEVEL),
        "Calls whose arguments do not fit the tool's schema: not looked at, recorded, or refused before the server sees them.",
    ),
    key(
        "guard.results",
        one_of(SCHEMA_MODES, BY_LEVEL),
        "Structured results that do not fit the tool's output schema: not looked at, recorded, or replaced by an error.",
    ),
    key(
        "guard.privacy.credential",
        one_of(CLEAN_MODES, BY_LEVEL),
        "Keys, tokens and passwords in what tools say: not looked for, recorded, or replaced by a placeholder. The other keys of the table are off unless they are set.",
    ),
    key("guard.privacy.email", one_of(CLEAN_MODES, BY_LEVEL), "The same for e-mail addresses."),
    key("guard.privacy.phone", one_of(CLEAN_MODES, BY_LEVEL), "The same for telephone numbers."),
    key("guard.privacy.iban", one_of(CLEAN_MODES, BY_LEVEL), "The same for bank account numbers (IBAN)."),
    key("guard.privacy.card", one_of(CLEAN_MODES, BY_LEVEL), "The same for numbers of payment cards."),
    key(
        "guard.secret_forms",
        one_of(SECRET_FORM_ACTIONS, BY_LEVEL),
        "Forms by which a server asks a person for a password or a key: shown, recorded, or refused.",
    ),
    key(
        "guard.canaries",
        one_of(SECRET_FORM_ACTIONS, BY_LEVEL),
        "Calls whose arguments hold a canary of `signalbox guard canary`: not looked at, recorded, or refused.",
    ),
    key(
        "guard.flows.NAME.from",
        KeyKind::Texts,
        "Tools whose results are traced: patterns `BACKEND` or `BACKEND/NAME`, `category:WORD` or `trust:LEVEL`.",
    ),
    key("guard.flows.NAME.to", KeyKind::Texts, "Tools that may not be given what those return, written the same way."),
    key(
        "guard.flows.NAME.action",
        one_of(&["report", "block"], "block"),
        "Calls that would be given it: recorded or refused.",
    ),
    key(
        "guard.flows.NAME.min_chars",
        count(24, 8, 1024),
        "Length from which a run of the same characters counts. Numbers, tokens and addresses count as a whole.",
    ),
    key(
        "guard.pins",
        one_of(PIN_MODES, BY_LEVEL),
        "Tools whose definition differs from the approved one, or without a lock file from the one seen first: not compared, recorded, quarantined if the new definition is suspicious, or quarantined until it is approved.",
    ),
    key(
        "guard.lock",
        KeyKind::Text(""),
        "File of approved definitions, which `signalbox tools pin` writes; by default `signalbox.lock` beside the configuration file.",
    ),
    key(
        "guard.tools.NAME.arguments",
        one_of(SCHEMA_MODES, BY_LEVEL),
        "The same as `guard.arguments` for some tools. NAME is a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`; of several the last counts.",
    ),
    key("guard.tools.NAME.results", one_of(SCHEMA_MODES, BY_LEVEL), "The same as `guard.results` for some tools."),
    key(
        "guard.filters.traversal",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "Paths in arguments that leave their folder or name files with secrets: not looked for, recorded, changed so that they do no harm (refused where that cannot be done), or refused. The other keys of the table are for other attacks.",
    ),
    key(
        "guard.filters.shell",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for syntax of shells in words and names, and for destructive commands.",
    ),
    key(
        "guard.filters.sql",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for SQL in values, and for destructive statements.",
    ),
    key("guard.filters.template", one_of(FILTER_ACTIONS, BY_LEVEL), "The same for expressions of template engines."),
    key(
        "guard.filters.metadata_address",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for addresses at which clouds hand out credentials, in every spelling.",
    ),
    key(
        "guard.filters.private_address",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for addresses of private networks and of this machine, for schemes other than HTTP, and for addresses that parsers read differently.",
    ),
    key(
        "guard.filters.control",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for characters that control or hide, in values that name something.",
    ),
    key(
        "guard.filters.credential",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same for keys, tokens and passwords in any argument.",
    ),
    key(
        "guard.clean.results",
        one_of(CLEAN_MODES, BY_LEVEL),
        "Characters and markup that hide or act, in results of tools: not looked for, recorded, or removed. The other keys of the table are for other places.",
    ),
    key("guard.clean.resources", one_of(CLEAN_MODES, BY_LEVEL), "The same in contents of resources."),
    key("guard.clean.prompts", one_of(CLEAN_MODES, BY_LEVEL), "The same in prompts."),
    key(
        "guard.clean.errors",
        one_of(CLEAN_MODES, BY_LEVEL),
        "The same in errors, and in results of tools that failed.",
    ),
    key("guard.clean.logs", one_of(CLEAN_MODES, BY_LEVEL), "The same in log messages."),
    key("guard.clean.progress", one_of(CLEAN_MODES, BY_LEVEL), "The same in progress and the state of tasks."),
    key("guard.clean.questions", one_of(CLEAN_MODES, BY_LEVEL), "The same in questions to a person or a model."),
    key(
        "guard.clean.definitions",
        one_of(CLEAN_MODES, BY_LEVEL),
        "The same in listed tools, prompts and resources, and in instructions of servers.",
    ),
    key(
        "guard.instructions.results",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "Texts that tell the model what to do, in results of tools: not looked for, recorded, marked with a note before them, or withheld. The other keys of the table are for other places; what has no room for a note is recorded.",
    ),
    key("guard.instructions.resources", one_of(INSTRUCTION_MODES, BY_LEVEL), "The same in contents of resources."),
    key("guard.instructions.prompts", one_of(INSTRUCTION_MODES, BY_LEVEL), "The same in prompts."),
    key(
        "guard.instructions.errors",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "The same in errors, and in results of tools that failed.",
    ),
    key("guard.instructions.logs", one_of(INSTRUCTION_MODES, BY_LEVEL), "The same in log messages."),
    key(
        "guard.instructions.progress",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "The same in progress and the state of tasks.",
    ),
    key(
        "guard.instructions.questions",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "The same in questions to a person or a model.",
    ),
    key(
        "guard.instructions.definitions",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "The same in listed tools, prompts and resources, and in instructions of servers; `block` leaves the entry out of lists.",
    ),
    key(
        "guard.tools.NAME.filters",
        one_of(FILTER_ACTIONS, BY_LEVEL),
        "The same as all of `guard.filters` for arguments of some tools.",
    ),
    key(
        "guard.tools.NAME.privacy",
        one_of(CLEAN_MODES, BY_LEVEL),
        "The same as all of `guard.privacy` for what some tools say.",
    ),
    key("guard.tools.NAME.clean", one_of(CLEAN_MODES, BY_LEVEL), "The same as `guard.clean` for what some tools say."),
    key(
        "guard.tools.NAME.instructions",
        one_of(INSTRUCTION_MODES, BY_LEVEL),
        "The same as `guard.instructions` for what some tools say.",
    ),
];
