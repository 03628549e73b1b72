//! What questions are asked about.

use std::collections::BTreeMap;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{InputRequest, InputRequests};

use super::AskedForm;
use crate::server::core::Core;

/// What the sealed state is bound to: this request of this caller.
pub(crate) struct Subject {
    pub(crate) principal: String,
    pub(crate) method: &'static str,
    /// The tool, prompt or resource.
    pub(crate) name: String,
    pub(crate) arguments: Option<Json>,
    /// Whether its handler passes requests on: then whoever asks checks the answers.
    pub(crate) passes_on: bool,
}

impl Subject {
    pub(super) fn binding(&self, core: &Core) -> Vec<u8> {
        // As a sorted tree, so that the order of members and white space do not matter.
        let mut arguments = self.arguments.as_ref().map(Json::to_value);
        arguments.iter_mut().for_each(serde_json::Value::sort_all_objects);
        let subject = (&core.info.name, &self.principal, self.method, &self.name, arguments);
        serde_json::to_vec(&subject).unwrap_or_default()
    }

    /// What the answer to a question that the handler returned must fit.
    ///
    /// # Errors
    /// When no answer can be checked.
    pub(super) fn form_of(
        &self,
        question: &InputRequest,
    ) -> Result<Option<AskedForm>, ErrorObject> {
        if self.passes_on { Ok(None) } else { AskedForm::of(question) }
    }

    /// The same for several questions, by key.
    ///
    /// # Errors
    /// When no answer to one of them can be checked.
    pub(super) fn forms(
        &self,
        asked: &InputRequests,
    ) -> Result<BTreeMap<String, AskedForm>, ErrorObject> {
        let mut forms = BTreeMap::new();
        for (key, question) in asked.iter() {
            if let Some(form) = self.form_of(question)? {
                forms.insert(key.to_owned(), form);
            }
        }
        Ok(forms)
    }
}
