//! `completion/complete`: who suggests values for an argument.

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{Complete, Method};
use bowline_proto::model::{CompleteArgument, CompleteParams, CompleteResult};

use super::target::{Completable, Refusal};
use super::{Started, Starting};
use crate::server::answer::Answer;
use crate::server::complete::Completing;
use crate::server::error::HandlerError;
use crate::server::failure::Failure;
use crate::server::{prompt, resource};
use crate::uri_template::UriTemplate;

pub(super) fn start(
    starting: &Starting<'_>,
    params: CompleteParams<'_>,
    source: &Completable,
) -> Result<Started, Refusal> {
    let argument = params.argument;
    let (name, has_argument, completers, nest, passes_on) = match source {
        Completable::Prompt(prompt) => {
            let mut arguments = prompt.definition.arguments.iter().flatten();
            let has_argument = arguments.any(|it| it.name == argument.name);
            let prompt::Entry { definition, completers, nest, passes_on, .. } = &**prompt;
            (&definition.name, has_argument, completers, nest, *passes_on)
        }
        Completable::Template(resource) => {
            let mut variables = resource.template.iter().flat_map(UriTemplate::variables);
            let has_argument = variables.any(|variable| variable == argument.name);
            let resource::Entry { definition, completers, nest, passes_on, .. } = &**resource;
            (&definition.uri, has_argument, completers, nest, *passes_on)
        }
    };
    if !has_argument {
        let message = format!("{}: {name} has no argument {:?}", Complete::NAME, argument.name);
        return Err(Refusal::new(Failure::rejected(ErrorObject::invalid_params(message)), nest));
    }
    let mut setting = starting.setting(None, nest);
    setting.params = starting.params_for(passes_on);
    let context = starting.context(Complete::NAME, &params.meta, setting);
    let others =
        params.context.and_then(|context| context.arguments).into_iter().flatten().collect();
    let completer = completers.get(&argument.name).cloned();
    let CompleteArgument { name: argument, value } = argument;
    let completing = Completing { argument, value, others, context: context.clone() };
    Ok(Started::Running(starting.run(context, async move {
        match completer {
            Some(completer) => completer
                .start(completing)
                .await
                .map_or_else(HandlerError::into_outcome, |it| Ok(Answer::Completion(it))),
            None => Ok(Answer::Completion(CompleteResult::default())),
        }
    })))
}
