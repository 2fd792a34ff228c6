//! Removes from a text what its reader cannot see and what acts without being read.
//!
//! A person and a model read the same characters differently: a terminal executes escape sequences, a browser hides
//! elements, and a model reads characters that have no glyph. Cleaning makes both read the same text. Invisible
//! characters are deleted; visible constructs that act, such as an image whose address carries data out, are replaced
//! by a short placeholder. The functions are pure, take linear time and are idempotent.

mod character_scan;
mod character_tables;
mod edit;
mod html_tag;
mod link_target;
mod markup_scan;
mod terminal_sequence;
#[cfg(test)]
mod tests;

pub(crate) use edit::Edit;

use edit::apply;

/// Maximum number of passes over one text. Each pass may join characters that the next one has to look at.
const MAX_PASSES: usize = 8;

/// Kind of construct that cleaning removes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemovalClass {
    /// Escape sequence of a terminal: colours, movements of the cursor, titles, device commands.
    TerminalSequence,
    /// Hyperlink of a terminal (OSC 8). Its visible text stays.
    TerminalLink,
    /// Write to the clipboard through a terminal (OSC 52).
    ClipboardWrite,
    /// Control character that rings, deletes or overwrites.
    Control,
    /// Tag character U+E0000 to U+E007F, an invisible copy of ASCII.
    Tag,
    /// Variation selector after a character that has no such variant.
    VariationSelector,
    /// Zero-width space or joiner where no script needs it.
    ZeroWidth,
    /// Control of writing direction in a text that does not need it.
    Bidi,
    /// Soft hyphen, which breaks up words for a search but not for the eye.
    SoftHyphen,
    /// Mark of an interlinear annotation.
    Annotation,
    /// Invisible operator, filler or deprecated format character.
    Invisible,
    /// Long run of private-use characters, which have no meaning outside one font.
    PrivateUse,
    /// Combining marks beyond four on one base.
    CombiningFlood,
    /// Image whose address carries data to its host.
    DataImage,
    /// Link whose address carries data to its host.
    DataLink,
    /// Link that runs a script.
    ScriptLink,
    /// Address that holds its content itself (`data:`).
    DataUrl,
    /// Comment of HTML or Markdown, which a reader of the rendered text never sees.
    Comment,
    /// HTML element that is styled to be invisible.
    HiddenHtml,
    /// HTML element or attribute that loads or runs something.
    ActiveHtml,
}

impl RemovalClass {
    /// Returns the word for the class in records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TerminalSequence => "terminal-sequence",
            Self::TerminalLink => "terminal-link",
            Self::ClipboardWrite => "clipboard-write",
            Self::Control => "control",
            Self::Tag => "tag",
            Self::VariationSelector => "variation-selector",
            Self::ZeroWidth => "zero-width",
            Self::Bidi => "bidi",
            Self::SoftHyphen => "soft-hyphen",
            Self::Annotation => "annotation",
            Self::Invisible => "invisible",
            Self::PrivateUse => "private-use",
            Self::CombiningFlood => "combining-flood",
            Self::DataImage => "data-image",
            Self::DataLink => "data-link",
            Self::ScriptLink => "script-link",
            Self::DataUrl => "data-url",
            Self::Comment => "comment",
            Self::HiddenHtml => "hidden-html",
            Self::ActiveHtml => "active-html",
        }
    }
}

/// Switches of cleaning, by group of classes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleaningRules {
    /// Escape sequences of terminals and control characters.
    pub terminal: bool,
    /// Characters without a glyph: tags, variation selectors, zero-width characters, fillers, floods.
    pub invisible: bool,
    /// Controls of writing direction.
    pub bidi: bool,
    /// Images and links whose address carries data or runs a script.
    pub links: bool,
    /// Comments of HTML and Markdown.
    pub comments: bool,
    /// HTML elements that are hidden by their style.
    pub hidden_html: bool,
    /// Scripts, frames, embedded objects and event handlers.
    pub active_html: bool,
}

/// Text after cleaning, with a list of what it lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CleanText {
    /// The text that is safe to show.
    pub text: String,
    /// One entry per class, in the order of the first places.
    pub removed: Vec<RemovalCount>,
}

/// Removals of one class from a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct RemovalCount {
    /// Class of the removed constructs.
    pub class: RemovalClass,
    /// Number of constructs; a run of invisible characters counts as one.
    pub count: u32,
    /// Byte offset of the first one. It refers to the text as it was when the construct came to light, so it can
    /// differ from the original if other removals uncovered the construct.
    pub first: usize,
}

impl CleaningRules {
    /// Rules that remove every class.
    pub const ALL: Self = Self {
        terminal: true,
        invisible: true,
        bidi: true,
        links: true,
        comments: true,
        hidden_html: true,
        active_html: true,
    };
    /// No class: the text passes unchanged.
    pub const NONE: Self = Self {
        terminal: false,
        invisible: false,
        bidi: false,
        links: false,
        comments: false,
        hidden_html: false,
        active_html: false,
    };
    /// Only what is invisible or acts on a terminal; markup stays as it is, for source code and HTML files.
    pub const CHARACTERS: Self = Self { terminal: true, invisible: true, bidi: true, ..Self::NONE };

    /// Returns true if removals of this class are switched on.
    #[must_use]
    pub const fn allows(&self, class: RemovalClass) -> bool {
        use RemovalClass as C;
        match class {
            C::TerminalSequence | C::TerminalLink | C::ClipboardWrite | C::Control => self.terminal,
            C::Tag
            | C::VariationSelector
            | C::ZeroWidth
            | C::SoftHyphen
            | C::Annotation
            | C::Invisible
            | C::PrivateUse
            | C::CombiningFlood => self.invisible,
            C::Bidi => self.bidi,
            C::DataImage | C::DataLink | C::ScriptLink | C::DataUrl => self.links,
            C::Comment => self.comments,
            C::HiddenHtml => self.hidden_html,
            C::ActiveHtml => self.active_html,
        }
    }

    const fn has_markup(&self) -> bool {
        self.links || self.comments || self.hidden_html || self.active_html
    }
}

impl Default for CleaningRules {
    fn default() -> Self {
        Self::ALL
    }
}

/// Cleans a text. Returns `None` if there is nothing to remove, which costs one search for suspect bytes.
#[must_use]
pub fn clean(text: &str, rules: &CleaningRules) -> Option<CleanText> {
    let mut edits = character_scan::find_edits(text, rules, false);
    if edits.is_empty() {
        edits = markup_edits(text, rules);
    }
    if edits.is_empty() {
        return None;
    }
    let mut removed = Vec::new();
    let mut cleaned = text.to_owned();
    for pass in 0..MAX_PASSES {
        count(&edits, &mut removed);
        cleaned = apply(&cleaned, &edits);
        edits = character_scan::find_edits(&cleaned, rules, pass + 2 >= MAX_PASSES);
        if edits.is_empty() {
            edits = markup_edits(&cleaned, rules);
        }
        if edits.is_empty() {
            break;
        }
    }
    Some(CleanText { text: cleaned, removed })
}

/// Returns what [`clean`] would remove. Text that needs no cleaning is not copied.
#[must_use]
pub fn scan(text: &str, rules: &CleaningRules) -> Vec<RemovalCount> {
    clean(text, rules).map(|cleaned| cleaned.removed).unwrap_or_default()
}

/// Returns the edits of one pass over the original text, in order and without overlaps.
pub(crate) fn find_hidden(text: &str) -> Vec<Edit> {
    let mut edits = character_scan::find_edits(text, &CleaningRules::ALL, false);
    edits.extend(markup_edits(text, &CleaningRules { links: false, ..CleaningRules::ALL }));
    edit::settle(edits)
}

/// Returns the text without the characters that have no glyph, or `None` if it has none of them.
pub(crate) fn without_invisible(text: &str) -> Option<String> {
    clean(text, &CleaningRules::CHARACTERS).map(|cleaned| cleaned.text)
}

fn markup_edits(text: &str, rules: &CleaningRules) -> Vec<Edit> {
    match rules.has_markup() {
        true => markup_scan::find_edits(text, rules),
        false => Vec::new(),
    }
}

/// Adds edits to the list of removals.
fn count(edits: &[Edit], removed: &mut Vec<RemovalCount>) {
    for edit in edits {
        match removed.iter_mut().find(|removal| removal.class == edit.class) {
            Some(removal) => removal.count = removal.count.saturating_add(1),
            None => removed.push(RemovalCount { class: edit.class, count: 1, first: edit.start }),
        }
    }
}
