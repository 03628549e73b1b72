//! Questions of a legacy server to a modern caller: the call waits while the caller is asked.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::Method;
use tokio::time::sleep;

use super::crossing::adapted;
use super::forward::{Finished, InFlight, Waiting, json};
use super::losses::Loss;
use super::route::Question;
use super::upstream::Upstream;
use crate::server::{check_capability, interrupted};
use crate::{AskError, Context, HandlerError, InputRequired, Step};

/// Questions that come this soon after the first one are asked together with it.
const TOGETHER: Duration = Duration::from_millis(20);

/// What becomes of a call that asks a modern caller.
pub(super) enum Parked<T> {
    /// The caller is asked, or the server does without the answer.
    Step(Step<T>),
    /// The caller can answer none of it, which the server has heard.
    Unasked(Box<InFlight>),
}

/// Returns questions to a modern caller, and keeps the call until it comes back. Or returns the
/// result, if the server does without the answer.
///
/// What the caller cannot answer is refused only once all that belongs together has come: the
/// server may give up then.
pub(super) async fn park<M: Method>(
    mut call: InFlight,
    context: &Context,
    first: Question,
) -> Result<Parked<M::Result>, HandlerError> {
    let mut came = vec![first];
    let mut soon = std::pin::pin!(sleep(TOGETHER));
    loop {
        tokio::select! {
            biased;
            result = &mut call.answer => match call.finish::<M>(context, result)? {
                Finished::Done(step) => return Ok(Parked::Step(step)),
                Finished::Task(state) => call.follow(*state),
            },
            Some(question) = call.questions.recv() => came.push(question),
            () = &mut soon => break,
        }
    }
    call.asked = Vec::new();
    for question in came {
        let answerable = call.answerable(context, question);
        call.asked.extend(answerable);
    }
    if call.asked.is_empty() {
        return Ok(Parked::Unasked(Box::new(call)));
    }
    let mut required = InputRequired::new();
    for (place, question) in call.asked.iter().enumerate() {
        required = required.ask(format!("upstream-{place}"), question.request.clone());
    }
    call.route.park();
    let age = context.call.peer().core.limits.request_state_age;
    let upstream = Arc::clone(&call.upstream);
    let token = upstream.park(call, owner(context), age)?;
    Ok(Parked::Step(Step::Ask(required.state(json(&Waiting::Parked(token))?))))
}

/// Whom a call that waits counts against.
fn owner(context: &Context) -> Option<String> {
    let principal = context.caller().principal.as_ref().map(|it| it.as_str().to_owned());
    #[cfg(feature = "http")]
    let principal = principal.or_else(|| context.peer_addr().map(|it| it.ip().to_string()));
    principal
}

/// Goes on with a call whose questions the caller has answered.
pub(super) fn resume(
    upstream: &Arc<Upstream>,
    context: &Context,
    token: &str,
) -> Result<InFlight, HandlerError> {
    let mut call = upstream.unpark(token).ok_or_else(|| {
        upstream.pool.losses().add(Loss::LateAnswer);
        HandlerError::Refused(interrupted(&format!("the call to {:?}", upstream.name)))
    })?;
    call.route.lead_to(context);
    for (place, question) in std::mem::take(&mut call.asked).into_iter().enumerate() {
        let answer = match context.answer::<Json>(&format!("upstream-{place}")) {
            Some(answer) => adapted(answer, question.request.method(), call.revision),
            None => Err(ErrorObject::internal("the caller did not answer this question")),
        };
        let _ = question.answer.send(answer);
    }
    Ok(call)
}

impl InFlight {
    /// The question, unless the caller cannot be asked: then the server hears so.
    pub(super) fn answerable(&mut self, context: &Context, question: Question) -> Option<Question> {
        let Err(error) = check_capability(&question.request, &context.caller().capabilities) else {
            return Some(question);
        };
        self.refuse(question, error);
        None
    }

    fn refuse(&mut self, question: Question, error: AskError) {
        self.upstream.pool.losses().add(Loss::UnansweredQuestion);
        let refusal = ErrorObject::invalid_request(format!("the caller cannot answer: {error}"));
        let _ = question.answer.send(Err(refusal));
        self.missing = Some(error);
    }
}
