//! Identities and capabilities.

use super::{Adapt, Unsupported, only, since};
use crate::model::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::revision::Revision::{self, *};

impl Adapt for Implementation {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_06_18, to, &mut self.title);
        since(V2025_11_25, to, &mut self.description);
        since(V2025_11_25, to, &mut self.website_url);
        since(V2025_11_25, to, &mut self.icons);
        Ok(())
    }
}

impl Adapt for ClientCapabilities {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        if to < V2025_11_25 && !self.has_elicitation_form() {
            // A server that only knows forms would read `{}` as a promise of forms.
            self.elicitation = None;
        }
        since(V2025_06_18, to, &mut self.elicitation);
        if let Some(elicitation) = &mut self.elicitation {
            since(V2025_11_25, to, &mut elicitation.form);
            since(V2025_11_25, to, &mut elicitation.url);
        }
        if let Some(sampling) = &mut self.sampling {
            since(V2025_11_25, to, &mut sampling.context);
            since(V2025_11_25, to, &mut sampling.tools);
        }
        if let Some(roots) = &mut self.roots
            && to.is_modern()
        {
            roots.list_changed = None;
        }
        only(V2025_11_25, to, &mut self.tasks);
        since(V2025_11_25, to, &mut self.extensions);
        Ok(())
    }
}

impl Adapt for ServerCapabilities {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        since(V2025_03_26, to, &mut self.completions);
        only(V2025_11_25, to, &mut self.tasks);
        // 2025-11-25 does not name the member, but its capabilities are open and peers of that
        // time use it there.
        since(V2025_11_25, to, &mut self.extensions);
        Ok(())
    }
}
