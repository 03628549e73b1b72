//! How a call becomes a task: at once, after a while, or when its handler says so.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, Method};
use bowline_proto::model::task_extension;

use super::super::answer::{Answer, Outcome};
use super::super::bus::Sink;
use super::super::call::Call;
use super::super::caller::Profile;
use super::super::context::Context;
use super::super::extension::check_declared;
use super::super::failure::{Failure, FailureKind};
use super::super::handler::BoxFuture;
use super::super::running::guarded;
use super::super::tool;
use super::link::Link;
use super::record::{Lease, State, TaskClient, TaskRecord};
use super::run::Run;
use super::shared::{Doubt, Shared};
use super::store::StoreError;
use super::watch::topic;
use super::{TaskMode, Tasks};
use crate::random;
use crate::server::dispatch::begin_tool;

/// A call that becomes a task.
pub(crate) struct Launch {
    pub(crate) tasks: Tasks,
    pub(crate) context: Context,
    pub(crate) tool: Arc<tool::Entry>,
    pub(crate) arguments: Option<Json>,
    pub(crate) plan: Plan,
    /// The legacy session, which is told when the status changes.
    pub(crate) sink: Option<Arc<Sink>>,
}

/// When a call becomes a task, and how long its caller wants that to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    start: Start,
    ttl: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    AtOnce,
    After(Duration),
    OnDemand,
}

impl Plan {
    /// Whether the handler may turn the call into a task while it runs.
    pub(crate) fn is_later(self) -> bool {
        self.start != Start::AtOnce
    }

    /// Whether a call of a tool becomes a task. `wanted` is what the caller says about that, which
    /// only callers of 2025-11-25 do: 0 stands for no particular time to live.
    ///
    /// # Errors
    /// When the tool runs only as a task, and the caller cannot use one.
    pub(crate) fn of(
        mode: TaskMode,
        name: &str,
        caller: &Profile,
        wanted: Option<Option<u64>>,
    ) -> Result<Option<Self>, ErrorObject> {
        let revision = caller.revision;
        if revision.is_modern() {
            return match check_declared(Some(task_extension::ID), caller) {
                Ok(()) => Ok(Some(Self { start: mode.into(), ttl: None })),
                Err(error) if mode == TaskMode::Required => Err(error),
                Err(_) => Ok(None),
            };
        }
        match wanted.filter(|_| revision.has_requested_tasks()) {
            Some(ttl) => Ok(Some(Self { start: Start::AtOnce, ttl })),
            None if mode == TaskMode::Required => {
                let message = format!(
                    "{}: {name:?} runs only as a task; help: call it with `params.task`, in 2025-11-25",
                    CallTool::NAME
                );
                Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message))
            }
            None => Ok(None),
        }
    }
}

impl From<TaskMode> for Start {
    fn from(mode: TaskMode) -> Self {
        match mode {
            TaskMode::Optional | TaskMode::Required => Self::AtOnce,
            TaskMode::After(time) => Self::After(time),
            TaskMode::OnDemand => Self::OnDemand,
        }
    }
}

/// The refusal of a task for a tool that cannot be one.
pub(crate) fn forbidden(name: &str) -> ErrorObject {
    let message = format!("{}: {name:?} cannot run as a task", CallTool::NAME);
    ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message)
}

impl Launch {
    /// Runs the call until it has ended or is a task.
    pub(crate) async fn run(self) -> Outcome {
        let call = Arc::clone(&self.context.call);
        let name = &self.tool.definition.name;
        let arguments = self.arguments.as_ref().map(Json::as_raw);
        let handler = match begin_tool(Arc::clone(&self.tool), &self.context, name, arguments) {
            Ok(handler) => handler,
            Err(outcome) => return outcome,
        };
        let mut handler: BoxFuture<Outcome> = Box::pin(guarded(Arc::clone(&call), handler));
        let wanted = async {
            match &call.rounds {
                Some(rounds) => rounds.task_wanted().await,
                None => std::future::pending().await,
            }
        };
        match self.plan.start {
            Start::AtOnce => {}
            Start::After(time) => tokio::select! {
                biased;
                outcome = &mut handler => return outcome,
                () = wanted => {}
                () = tokio::time::sleep(time) => {}
            },
            Start::OnDemand => tokio::select! {
                biased;
                outcome = &mut handler => return outcome,
                () = wanted => {}
            },
        }
        let is_later = self.plan.is_later();
        match self.detach(&call, &mut handler).await {
            // It has begun, and what it has done would be lost.
            Err(failure) if is_later && !call.is_cancelled() => {
                let why = &failure.error.message;
                tracing::debug!(why, "a call that would be a task goes on without");
                if let Some(rounds) = &call.rounds {
                    rounds.refuse_task();
                }
                handler.await
            }
            outcome => outcome,
        }
    }

    /// Makes the call a task: stored first, then told. Otherwise the handler stays where it is.
    async fn detach(self, call: &Arc<Call>, handler: &mut BoxFuture<Outcome>) -> Outcome {
        let shared = self.tasks.shared();
        let mut record = self.record(shared, call);
        if shared.is_closing() {
            return Err(busy("the server is shutting down"));
        }
        let place = shared.places.try_take(record.owner());
        record.is_queued = place.is_none();
        let record = Arc::new(record);
        if place.is_none() && self.plan.is_later() {
            return Err(busy("as many tasks are running as are allowed"));
        }
        shared.start_sweeping();
        let starting = shared.starting(&record.id, Doubt::Created);
        match shared.store.create(Arc::clone(&record), shared.quota).await {
            Ok(()) => {}
            Err(StoreError::Full) => {
                starting.settle();
                return Err(busy("there is no room for another task; try again later"));
            }
            Err(error) => {
                tracing::error!(%error, "a task cannot be stored");
                let message = format!("{}: the task cannot be stored", CallTool::NAME);
                return Err(Failure::from(ErrorObject::internal(message)));
            }
        }
        if call.is_cancelled() {
            // Nobody will ever know its id.
            shared.end(&record.id, &State::Cancelled).await;
            return Err(call.abandonment());
        }
        if let Some(sink) = &self.sink {
            let progress = call.progress.clone();
            let reporting = progress.map(|progress| (Arc::downgrade(&call.outbox), progress));
            shared.views.add(&record, shared.now(), reporting);
            sink.with(None, |subscription| subscription.follow(topic(&record.id)));
        }
        let link = Link::new(shared, &record);
        call.become_task(Arc::clone(&link), shared.time_for(&record, &self.tool));
        let handler = std::mem::replace(handler, Box::pin(std::future::pending()));
        shared.spawn(Run { link, call: Arc::clone(call), handler, place });
        starting.settle();
        Ok(Answer::Task(Box::new(record.to_task(shared.now()))))
    }

    fn record(&self, shared: &Shared, call: &Arc<Call>) -> TaskRecord {
        let now = shared.now();
        let profile: &Profile = &call.caller;
        TaskRecord {
            id: random::token(),
            version: 0,
            owner: profile.principal.as_ref().map(|it| it.as_str().to_owned()),
            party: call.caller.network(),
            revision: profile.revision,
            tool: self.tool.definition.name.clone(),
            arguments: self.arguments.clone(),
            client: TaskClient {
                capabilities: profile.capabilities.clone(),
                info: profile.info.clone(),
                traceparent: call.traceparent().map(str::to_owned),
            },
            state: State::Working,
            message: None,
            created: now,
            updated: now,
            ttl: shared.limits.ttl(self.plan.ttl),
            past: call.rounds.as_ref().map(|rounds| rounds.past()).unwrap_or_default(),
            lease: Lease { holder: shared.boot().to_owned(), fence: 1, until: shared.lease(now) },
            is_queued: false,
        }
    }
}

fn busy(why: &str) -> Failure {
    let error = ErrorObject::internal(format!("{}: {why}", CallTool::NAME));
    Failure::new(FailureKind::Busy, error)
}
