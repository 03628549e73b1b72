//! `bowline check`: tests any server for what the specification demands and for what clients choke
//! on.

mod calls;
mod evidence;
mod group;
mod list;
mod opening;
mod plan;
mod probe;
mod reply;
mod report;
mod run;
mod seen;
mod survey;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use bowline::Revision;
use bowline::client::Preference;
use bowline_web::Web;
use clap::{Args, ValueEnum};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::Value;

use self::probe::Settings;
use self::report::{Conclusion, Finding, Look, Report, Verdict};
use self::run::{Choice, TIMEOUT};
use self::survey::Survey;
use self::table::Transport;
use self::wire::{Door, Post, Program};
use crate::failure::{Code, Failure};
use crate::screen::{Format, OutputArgs, Screen, Style};
use crate::session::{self, Journal};
use crate::target::{Location, Resolved, TargetArgs};

/// Test a server for what the specification demands and for what clients choke on
#[derive(Args)]
pub(crate) struct Check {
    /// Say what can be checked, and end
    #[arg(long)]
    list: bool,

    /// Only these checks: ids or groups, with commas between them
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    only: Vec<String>,

    /// All checks but these: ids or groups, with commas between them
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    skip: Vec<String>,

    /// Check every revision that the server speaks, in both eras; the default without --revision
    #[arg(long, conflicts_with = "revision")]
    all_revisions: bool,

    /// Let recommendations and portability decide the exit status too
    #[arg(long)]
    strict: bool,

    /// Call this tool with these arguments as well; may be repeated. Without it, only tools that
    /// say they only read and need no arguments are called
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    call: Vec<String>,

    /// How many resources and prompts are read, and safe tools called, at most
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    samples: usize,

    /// How many programs are tested at once, if the server is one; 1 is for those that cannot run
    /// twice at a time [default: one for each processor, from 2 to 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,

    /// How the report is written to standard output [default: as --output says]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,

    /// Write the report as JUnit's XML to a file, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Human,
    /// One line of JSON
    Json,
    /// JUnit's XML
    Junit,
}

impl Check {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let output = self.target.options.output.clone().or(root);
        let screen = Screen::new(&output);
        let form = self.format.unwrap_or(match screen.format {
            Format::Human => Form::Human,
            Format::Json => Form::Json,
        });
        if self.list {
            match form {
                Form::Json => screen.print_json(&list::to_json().into()),
                Form::Human | Form::Junit => screen.print(&list::for_people(screen.columns)),
            }
            return screen.finish();
        }
        let choice = self.choice()?;
        let resolved = self.target.resolve()?;
        let mut settings = self.settings(&resolved).await?;
        let mut kept = session::Settings::new(&self.target.options, root)?;
        // With evidence in the report, messages as they come would be there twice.
        kept.is_verbose = false;
        let checked = self.report(&resolved, &mut settings, &choice, &screen);
        let report = Journal::keep(&resolved, &kept, checked).await?;
        match form {
            Form::Json => screen.print_json(&report.to_json(output.verbose).into()),
            Form::Junit => screen.print(&report.to_junit()),
            Form::Human => {
                let paint = |verdict, word: &str| screen.out.paint(style(verdict), word);
                let look = Look { paint: &paint, columns: screen.columns, all: output.verbose };
                screen.print(&report.for_people(&look));
            }
        }
        if let Some(file) = &self.junit {
            write(file, &report.to_junit())?;
        }
        screen.finish()?;
        match report.conclusion() {
            Conclusion::Good => Ok(()),
            Conclusion::Broken => Err(Failure::silent(Code::Broken)),
            Conclusion::NotPortable => Err(Failure::silent(Code::NotPortable)),
            Conclusion::Barred => Err(barred(&resolved, report.barred.as_deref())),
        }
    }

    fn choice(&self) -> Result<Choice, Failure> {
        let (only, skip) = (self.only.clone(), self.skip.clone());
        let choice = Choice { only, skip, ..Choice::default() };
        match choice.unknown() {
            None => Ok(choice),
            Some(word) => {
                let what = format!("{word:?} is neither a check nor a group of checks");
                Err(Failure::usage(what).with_remedy("`bowline check --list` names them all"))
            }
        }
    }

    async fn settings(&self, resolved: &Resolved) -> Result<Settings, Failure> {
        let mut calls = Vec::new();
        for pair in self.call.chunks(2) {
            let [tool, text] = pair else { continue };
            let wrong = |error| Failure::usage(format!("--call {tool}: not JSON: {error}"));
            let arguments: Value = serde_json::from_str(text).map_err(wrong)?;
            if !arguments.is_object() {
                let what = format!("--call {tool}: arguments are a JSON object, not {arguments}");
                return Err(Failure::usage(what));
            }
            calls.push((tool.clone(), arguments));
        }
        let (door, is_local) = open(resolved)?;
        let has_credentials = match door.post() {
            Some(post) => post.has_credentials().await,
            None => false,
        };
        let timeout = self.target.options.timeout.unwrap_or(TIMEOUT);
        let (samples, jobs) = (self.samples, self.jobs.map_or_else(processors, usize::from));
        let settings = Settings::new(door, timeout);
        Ok(Settings { calls, samples, jobs, is_local, has_credentials, ..settings })
    }

    /// Finds out what there is, and checks it.
    async fn report(
        &self,
        resolved: &Resolved,
        settings: &mut Settings,
        choice: &Choice,
        screen: &Screen,
    ) -> Result<Report, Failure> {
        let surveyed = survey::survey(settings).await;
        let mut barred_by = None;
        let (spoken, server) = match surveyed {
            Survey::Speaks { revisions, server } => (revisions, server),
            Survey::Barred(why) => {
                settings.is_barred = true;
                barred_by = Some(match settings.has_credentials {
                    true => format!("{why}: the token is not good"),
                    false => why,
                });
                // The newest rules are what clients follow.
                (vec![Revision::LATEST], None)
            }
            Survey::Broken(why) => {
                return Err(Failure::new(Code::Broken, format!("{}: {why}", resolved.name))
                    .with_remedy("no client can talk to it; `bowline doctor` looks closer"));
            }
            Survey::Unreachable(why) => {
                return Err(Failure::new(Code::Unreachable, format!("{}: {why}", resolved.name))
                    .with_remedy("`bowline doctor` tells where it fails"));
            }
        };
        let revisions = self.chosen(&spoken, settings)?;
        let settings = &*settings;
        let mut done = 0.0;
        // Hundreds of lines in a log help nobody; a bar in a terminal does.
        let is_watched = std::io::stderr().is_terminal();
        let told = |finding: &Finding| {
            done += 1.0;
            let Finding { check, revision, .. } = finding;
            if is_watched {
                screen.progress(done, None, &format!("{revision} {}", check.id));
            }
        };
        let findings = run::run(settings, choice, (&revisions, &spoken), told).await;
        if findings.is_empty() && settings.is_barred {
            return Err(barred(resolved, barred_by.as_deref()));
        }
        Ok(Report {
            target: describe(resolved),
            server,
            transport: settings.transport(),
            revisions,
            findings,
            is_strict: self.strict,
            barred: barred_by,
        })
    }

    /// The revisions to check.
    fn chosen(&self, spoken: &[Revision], settings: &Settings) -> Result<Vec<Revision>, Failure> {
        let chosen: Vec<Revision> = match self.target.options.revision.unwrap_or_default() {
            Preference::Auto => spoken.to_vec(),
            Preference::Pin(revision)
                if revision.is_modern() && settings.transport() == Transport::Sse =>
            {
                let what = format!("the server speaks HTTP+SSE, which {revision} does not have");
                return Err(Failure::usage(what));
            }
            // One that the server does not speak is checked all the same: the report tells.
            Preference::Pin(revision) => vec![revision],
            _ if settings.is_barred => spoken.to_vec(),
            Preference::LegacyOnly => spoken.iter().copied().filter(|it| !it.is_modern()).collect(),
            Preference::ModernOnly => spoken.iter().copied().filter(|it| it.is_modern()).collect(),
        };
        match chosen.is_empty() {
            false => Ok(chosen),
            true => {
                let spoken = spoken.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
                Err(Failure::usage(format!("the server speaks {spoken} and nothing of that era")))
            }
        }
    }
}

/// How many programs this machine can start at once without any of them starting late.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, |it| it.get().clamp(2, 4))
}

/// The server wants to know who asks, and the rest could not be checked.
fn barred(resolved: &Resolved, why: Option<&str>) -> Failure {
    let why = why.unwrap_or("a token is wanted");
    let what = format!("{}: {why}; nothing but that can be checked", resolved.name);
    Failure::new(Code::Unauthorized, what)
        .with_remedy("`bowline login` logs in; --token and --header send what you have")
}

/// Where the server is, and whether that is this machine.
fn open(resolved: &Resolved) -> Result<(Door, bool), Failure> {
    match &resolved.location {
        Location::Command { program, args, env, cwd } => {
            let (program, args) = (program.clone(), args.clone());
            let program = Program::Command { program, args, env: env.clone(), cwd: cwd.clone() };
            Ok((Door::Program(program), true))
        }
        Location::Url { url, headers } => {
            let wrong = |why: String| Failure::usage(format!("{url}: {why}"));
            let parsed: Uri = url.parse().map_err(|error| wrong(format!("no URL: {error}")))?;
            let mut web = Web::builder();
            if let Some(pem) = resolved.ca_pem()? {
                web = web.ca_pem(&pem);
            }
            let web = web.build().map_err(|error| wrong(error.to_string()))?;
            let mut given = HeaderMap::new();
            for (name, value) in headers {
                let bad = |_| wrong(format!("{name}: no header that can be sent"));
                let value = HeaderValue::from_str(value).map_err(|_| bad(()))?;
                given.append(HeaderName::try_from(name.as_str()).map_err(|_| bad(()))?, value);
            }
            let host = parsed.host().unwrap_or_default().trim_matches(['[', ']']);
            let is_local = host.eq_ignore_ascii_case("localhost")
                || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
            let post = Post::new(web, parsed, given).with_login(resolved.login());
            Ok((Door::Address(Box::new(post)), is_local))
        }
    }
}

/// The server as the user named it. Without passwords in a URL.
fn describe(resolved: &Resolved) -> String {
    match &resolved.location {
        Location::Command { program, args, .. } if resolved.from.is_none() => {
            let words = std::iter::once(program).chain(args);
            words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        }
        Location::Url { url, .. } => {
            match url.split_once("://").map(|(scheme, rest)| (scheme, rest.split_once('@'))) {
                Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
                _ => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
            }
        }
        Location::Command { .. } => resolved.name.clone(),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::usage(format!("--junit {}: {error}", file.display()));
    std::fs::write(file, text).map_err(failed)
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Passed => Style::Green,
        Verdict::Failed => Style::Red,
        Verdict::Warned => Style::Yellow,
        Verdict::Skipped => Style::Dim,
    }
}
