//! The guard of a gateway: its settings, and what its interceptors share.

use crate::argument_check::ArgumentCheck;
use crate::canary::CanaryKey;
use crate::canary_check::CanaryCheck;
use crate::content_check::ContentCheck;
use crate::content_settings::{CleanMode, ContentClass, InstructionMode};
use crate::filter_check::FilterCheck;
use crate::flow_check::FlowCheck;
use crate::flows::FlowKey;
use crate::instructions::InstructionScorer;
use crate::question_check::QuestionCheck;
use crate::result_check::ResultCheck;
use crate::settings::{GuardMode, GuardSettings, ToolSettings};
use crate::tool_names::ToolNames;
use crate::tool_schemas::SchemaCache;
use arc_swap::{ArcSwap, ArcSwapOption};
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::{Case, EntryNames, Interceptor, Ruling};
use signalbox_engine::message_redactor::MessageRedactor;
use std::sync::{Arc, OnceLock};

/// Guard of a gateway. Clones share its state.
#[derive(Clone, Debug)]
pub struct Guard(Arc<GuardState>);

/// State that the interceptors of a guard share.
#[derive(Debug)]
pub(crate) struct GuardState {
    pub settings: ArcSwap<GuardSettings>,
    pub schemas: SchemaCache,
    /// Finds orders to the model in texts.
    scorer: OnceLock<Option<InstructionScorer>>,
    /// Tools of each backend.
    pub names: ToolNames,
    /// Redacts what texts quote of a message.
    pub redactor: Option<Arc<dyn MessageRedactor>>,
    /// Key of the fingerprints of what tools return.
    pub flow_key: FlowKey,
    /// Key of the canaries, once there are any.
    pub canary_key: ArcSwapOption<CanaryKey>,
}

/// Random values of a guard.
pub struct GuardSecrets {
    /// Key of the fingerprints of what tools return, made for this process.
    pub flows: [u8; 16],
    /// Key of the canaries of the data folder, if there are any.
    pub canaries: Option<[u8; 32]>,
}

impl Guard {
    /// Creates a guard with these settings. Texts quote values of messages as `redactor` leaves them.
    #[must_use]
    pub fn new(settings: GuardSettings, redactor: Option<Arc<dyn MessageRedactor>>, secrets: GuardSecrets) -> Self {
        Self(Arc::new(GuardState {
            settings: ArcSwap::from_pointee(settings),
            schemas: SchemaCache::default(),
            scorer: OnceLock::new(),
            names: ToolNames::default(),
            redactor,
            flow_key: FlowKey(secrets.flows),
            canary_key: ArcSwapOption::from_pointee(secrets.canaries.map(CanaryKey::new)),
        }))
    }

    /// Builds the scorer, which takes a tenth of a second, so that no message and no list has to wait for it.
    pub fn prepare(&self) {
        if !self.0.settings.load().is_off() {
            self.0.scorer();
        }
    }

    pub(crate) fn state(&self) -> &GuardState {
        &self.0
    }

    pub(crate) fn shared(&self) -> &Arc<GuardState> {
        &self.0
    }

    /// Replaces the settings while messages pass.
    pub fn replace(&self, settings: GuardSettings) {
        self.0.settings.store(Arc::new(settings));
    }

    /// Returns the interceptor that checks arguments. It stands before those that ask a person for consent.
    #[must_use]
    pub fn argument_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(ArgumentCheck::new(&self.0))
    }

    /// Returns the interceptor that filters arguments. It stands behind the one that checks their schema.
    #[must_use]
    pub fn filter_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(FilterCheck::new(&self.0))
    }

    /// Follows the canaries of the data folder.
    pub fn set_canary_key(&self, key: Option<[u8; 32]>) {
        self.0.canary_key.store(key.map(|key| Arc::new(CanaryKey::new(key))));
    }

    /// Returns the interceptor that keeps what some tools return from going into others.
    #[must_use]
    pub fn flow_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(FlowCheck::new(&self.0))
    }

    /// Returns the interceptor that watches for canaries.
    #[must_use]
    pub fn canary_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(CanaryCheck::new(&self.0))
    }

    /// Returns the interceptor that looks at what servers say. Rules see what it left.
    #[must_use]
    pub fn content_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(ContentCheck::new(&self.0))
    }

    /// Returns the interceptor that refuses forms which ask for secrets.
    #[must_use]
    pub fn question_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(QuestionCheck(Arc::clone(&self.0)))
    }

    /// Returns the interceptor that checks results. It stands next to the backends, so that it sees what they sent.
    #[must_use]
    pub fn result_check(&self) -> Arc<dyn Interceptor> {
        Arc::new(ResultCheck::new(&self.0))
    }
}

/// Mode that applies to a message.
#[derive(Clone, Debug)]
pub(crate) struct AppliedMode<M> {
    pub mode: M,
    /// Table of the configuration that sets it for some tools; `None` for the mode of all.
    table: Option<Arc<str>>,
}

impl<M> AppliedMode<M> {
    /// Returns the configuration key that is named in decisions.
    pub fn rule(&self, key: &str) -> Arc<str> {
        match &self.table {
            Some(table) => format!("guard.tools.{table}.{}", key.split('.').next().unwrap_or(key)).into(),
            None => format!("guard.{key}").into(),
        }
    }
}

impl GuardState {
    /// Returns the scorer if it is built.
    pub fn ready_scorer(&self) -> Option<&InstructionScorer> {
        self.scorer.get()?.as_ref()
    }

    /// Returns the scorer, which is built at first use. See [`Guard::prepare`].
    pub fn scorer(&self) -> Option<&InstructionScorer> {
        self.scorer.get_or_init(|| InstructionScorer::new(None).ok()).as_ref()
    }

    /// Returns the mode for a message about a tool. `general` is the setting for all tools, `own` that of a table for
    /// some.
    pub fn mode<M: GuardMode>(
        &self,
        case: &Case<'_>,
        general: impl Fn(&GuardSettings) -> M,
        own: impl Fn(&ToolSettings) -> Option<M>,
    ) -> AppliedMode<M> {
        let entry = if self.settings.load().tools.is_empty() { None } else { called_tool(case) };
        self.mode_of(entry, general, own)
    }

    /// Returns the mode for a message about this tool.
    pub fn mode_of<M: GuardMode>(
        &self,
        entry: Option<EntryRef<'_>>,
        general: impl Fn(&GuardSettings) -> M,
        own: impl Fn(&ToolSettings) -> Option<M>,
    ) -> AppliedMode<M> {
        let settings = self.settings.load();
        let named = entry.and_then(|entry| {
            let names = EntryNames::of(&entry);
            let mut fitting = settings.tools.iter().rev().filter(|tool| tool.tools.touches(&names));
            fitting.find_map(|tool| Some((own(tool)?, Arc::clone(&tool.name))))
        });
        let (mode, table) = named.map_or_else(|| (general(&settings), None), |(mode, table)| (mode, Some(table)));
        AppliedMode { mode: if settings.shadow { mode.in_shadow() } else { mode }, table }
    }

    /// Returns the mode for what hides or acts in content of this class.
    pub fn clean_mode(&self, case: &Case<'_>, class: ContentClass) -> AppliedMode<CleanMode> {
        self.mode(case, |settings| settings.clean.of(class), |tool| tool.clean)
    }

    /// Returns the mode for orders to the model in content of this class.
    pub fn instruction_mode(&self, case: &Case<'_>, class: ContentClass) -> AppliedMode<InstructionMode> {
        self.mode(case, |settings| settings.instructions.of(class), |tool| tool.instructions)
    }
}

/// Returns the tool that a case is about.
pub(crate) fn called_tool<'a>(case: &Case<'a>) -> Option<EntryRef<'a>> {
    let exchange = case.exchange?;
    let name = exchange.own_name.as_deref().or(exchange.subject.as_deref())?;
    Some(EntryRef { kind: ListKind::Tools, backend: case.backend?, name, definition: None })
}

/// Makes the record of a decision, whose text may quote the message.
pub(crate) fn ruling(rule: &Arc<str>, verdict: &'static str, detail: String) -> Ruling {
    Ruling { rule: Some(Arc::clone(rule)), verdict, detail, quotes: true, ..Ruling::default() }
}
