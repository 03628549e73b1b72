//! What handlers do: a sequence of values to keep, questions and pauses that follows from a number.

use std::sync::Arc;
use std::time::Duration;

use bowline::{
    Context, Elsewhere, ErrorObject, HandlerError, InputRequired, Step, TaskMode, Tool, ToolOutput,
};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::process::Process;
use crate::random::Random;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plan {
    number: u64,
}

/// A tool that runs again after a crash, and one that does not.
pub(crate) fn all(process: &Arc<Process>) -> Vec<Tool> {
    let tool = |name: &str| {
        let process = Arc::clone(process);
        let run = move |context: Context, plan: Plan| {
            let run = Run { process: Arc::clone(&process), context, number: plan.number };
            async move {
                let mut playing = Playing { run: &run, is_over: false };
                let played = run.play().await;
                playing.is_over = true;
                played
            }
        };
        Tool::new(name, run).task(TaskMode::Required)
    };
    vec![tool("again").rerun(), tool("never-again")]
}

/// Notes that a handler was cut down by a server that stops.
struct Playing<'a> {
    run: &'a Run,
    is_over: bool,
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.run.process.is_stopping() {
            self.run.process.world.note_cut(self.run.context.task_id().unwrap());
        }
    }
}

struct Run {
    process: Arc<Process>,
    context: Context,
    number: u64,
}

impl Run {
    async fn play(&self) -> Result<Step<String>, HandlerError> {
        let random = Random::new(self.number);
        // Rounds without questions: how many there were, and how many there are to be.
        let (done, mut rounds) = (self.context.request_state::<u64>().unwrap_or_default(), 0);
        let mut values = Map::new();
        for step in 0..random.below(5) {
            let pause = Duration::from_millis(random.below(4_000));
            match random.below(8) {
                0 | 1 => drop(values.insert(format!("{step}"), self.once(step, pause).await)),
                2 => {
                    let other = step + 100;
                    let (one, two) = tokio::join!(self.once(step, pause), self.once(other, pause));
                    values.insert(step.to_string(), one);
                    values.insert(other.to_string(), two);
                }
                3 => drop(self.ask(step).await?),
                4 => {
                    let (one, two) = tokio::join!(self.ask(step), self.ask(step + 100));
                    one?;
                    two?;
                }
                5 => {
                    self.context.status(format!("step {step}"));
                    sleep(pause).await;
                }
                6 => {
                    rounds += random.below(100);
                    if done < rounds {
                        return Ok(Step::Ask(InputRequired::new().state(json!(done + 1))));
                    }
                }
                _ => sleep(pause * 10).await,
            }
            self.process.alive().await;
        }
        match random.below(8) {
            0 => Err(HandlerError::Failed("it did not work".to_owned())),
            1 => Err(HandlerError::Refused(ErrorObject::internal("it is not possible"))),
            2 => {
                let task = self.context.task_id().unwrap().to_owned();
                tokio::spawn(Arc::clone(&self.process.world).end_outside(task));
                Err(Elsewhere.into_outcome().unwrap_err())
            }
            _ => Ok(Step::Done(Value::from(values).to_string())),
        }
    }

    async fn ask(&self, step: u64) -> Result<bool, HandlerError> {
        Ok(self.context.confirm(format!("question {step}?")).await?)
    }

    /// Work that must not be done again once its value is recorded.
    async fn once(&self, step: u64, pause: Duration) -> Value {
        let key = step.to_string();
        let task = self.context.task_id().unwrap().to_owned();
        let effect = async {
            self.process.alive().await;
            let world = &self.process.world;
            let recorded = world.disk().memo(&task, &key);
            assert_eq!(recorded, None, "a recorded value is made again");
            sleep(pause).await;
            self.process.alive().await;
            // Another one each time.
            Value::from(world.random.below(u64::from(u32::MAX)))
        };
        let value = self.context.once(&key, effect).await;
        self.process.alive().await;
        value
    }
}
