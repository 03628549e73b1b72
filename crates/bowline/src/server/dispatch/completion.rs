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
use crate::uri_template::UriTemplate;

pub(super) fn start(
    starting: &Starting<'_>,
    params: CompleteParams<'_>,
    source: &Completable,
) -> Result<Started, Refusal> {
    let argument = params.argument;
    let (name, has_argument, completers, nest) = match source {
        Completable::Prompt(prompt) => {
            let mut arguments = prompt.definition.arguments.iter().flatten();
            let has_argument = arguments.any(|it| it.name == argument.name);
            (&prompt.definition.name, has_argument, &prompt.completers, &prompt.nest)
        }
        Completable::Template(resource) => {
            let mut variables = resource.template.iter().flat_map(UriTemplate::variables);
            let has_argument = variables.any(|variable| variable == argument.name);
            (&resource.definition.uri, has_argument, &resource.completers, &resource.nest)
        }
    };
    if !has_argument {
        let message = format!("{}: {name} has no argument {:?}", Complete::NAME, argument.name);
        return Err(Refusal::new(Failure::rejected(ErrorObject::invalid_params(message)), nest));
    }
    let context = starting.context(Complete::NAME, &params.meta, starting.setting(None, nest));
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
