//! What a server declares that it has.

/// Which kinds of entries a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offered {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// Tools with apps, or resources that are apps.
    pub(crate) apps: bool,
}

impl Offered {
    pub(crate) fn extend(&mut self, more: Self) {
        self.tools |= more.tools;
        self.prompts |= more.prompts;
        self.resources |= more.resources;
        self.apps |= more.apps;
    }
}
