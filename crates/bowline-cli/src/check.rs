//! `bowline check`: tests any server against the specification and what well-known clients need.

mod human;
mod list;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use bowline_check::frames::Http;
use bowline_check::{
    Check as Run, CheckError, Conclusion, Finding, Profile, Report, Target, Verdict,
};
use clap::{Args, ValueEnum};
use http::Uri;
use serde_json::Value;

use self::human::Look;
use crate::failure::{Code, Failure};
use crate::screen::{Format, OutputArgs, Screen, Style};
use crate::session::{self, Journal};
use crate::target::{Location, Resolved, TargetArgs, tap};

/// Test a server against the specification and known client problems
#[derive(Args)]
pub(crate) struct Check {
    /// List all checks and exit
    #[arg(long)]
    list: bool,

    /// Run only these checks: ids or groups, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    only: Vec<String>,

    /// Run all checks but these: ids or groups, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    skip: Vec<String>,

    /// Check every revision that the server speaks, in both eras; the default without --revision
    #[arg(long, conflicts_with = "revision")]
    all_revisions: bool,

    /// Also count recommendations, and problems that only some clients have. Without it, only what
    /// every client needs affects the exit status
    #[arg(long)]
    strict: bool,

    /// Call this tool with these arguments as well; may be repeated. Without it, only tools that
    /// are marked read-only and need no arguments are called
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    call: Vec<String>,

    /// Maximum number of resources and prompts to read, and of safe tools to call
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    samples: usize,

    /// How many instances of a program to test at once; use 1 for programs that cannot run twice at
    /// a time [default: one for each processor, from 2 to 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,

    /// Format of the report on standard output [default: as set by --output]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Form>,

    /// Also write the report to a file as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Human,
    /// One line of JSON
    Json,
    /// JUnit XML
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
        let mut words = self.only.iter().chain(&self.skip);
        if let Some(word) = words.find(|word| !bowline_check::is_known(word)) {
            let what = format!("{word:?} is neither a check nor a group of checks");
            return Err(Failure::usage(what).with_remedy("`bowline check --list` lists them all"));
        }
        let resolved = self.target.resolve()?;
        let mut kept = session::Settings::new(&self.target.options, root)?;
        // The report has the evidence: messages as they come would be there twice.
        kept.is_verbose = false;
        let checked = self.check(&resolved, &screen);
        let report = Journal::keep(&resolved, &kept, checked).await?;
        match form {
            Form::Json => screen.print_json(&report.to_json(output.verbose).into()),
            Form::Junit => screen.print(&report.to_junit()),
            Form::Human => {
                let paint = |verdict, word: &str| screen.out.paint(style(verdict), word);
                let look = Look { paint: &paint, columns: screen.columns, all: output.verbose };
                screen.print(&human::render(&report, &look));
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

    async fn check(&self, resolved: &Resolved, screen: &Screen) -> Result<Report, Failure> {
        let mut done = 0.0;
        // A bar helps in a terminal; hundreds of lines in a log do not.
        let is_watched = std::io::stderr().is_terminal();
        let on_finding = |finding: &Finding| {
            done += 1.0;
            if is_watched {
                let Finding { rule, revision, .. } = finding;
                screen.progress(done, None, &format!("{revision} {}", rule.id));
            }
        };
        let run = self.settings(target(resolved)?)?.name(describe(resolved));
        let failed = |code, why| Failure::new(code, format!("{}: {why}", resolved.name));
        run.run_with(on_finding).await.map_err(|error| match error {
            CheckError::Unreachable(why) => failed(Code::Unreachable, why)
                .with_remedy("`bowline doctor` shows where the connection fails"),
            CheckError::NotMcp(why) => failed(Code::Broken, why)
                .with_remedy("no client can talk to it; `bowline doctor` looks closer"),
            CheckError::Barred(why) => barred(resolved, Some(&why)),
            error => Failure::usage(error.to_string()),
        })
    }

    fn settings(&self, target: Target) -> Result<Run, Failure> {
        let options = &self.target.options;
        let mut run = Run::new(target)
            .only(&self.only)
            .skip(&self.skip)
            .revisions(options.revision.unwrap_or_default())
            .samples(self.samples)
            .jobs(self.jobs.map_or_else(processors, usize::from))
            .profile(if self.strict { Profile::Strict } else { Profile::Default })
            .tap(tap());
        if let Some(timeout) = options.timeout {
            run = run.timeout(timeout);
        }
        for pair in self.call.chunks(2) {
            let [tool, text] = pair else { continue };
            let wrong = |error| Failure::usage(format!("--call {tool}: not JSON: {error}"));
            let arguments: Value = serde_json::from_str(text).map_err(wrong)?;
            if !arguments.is_object() {
                let what = format!("--call {tool}: arguments must be an object, not {arguments}");
                return Err(Failure::usage(what));
            }
            run = run.call(tool, arguments);
        }
        Ok(run)
    }
}

/// Checks a server, and returns the report as JSON; `done` hears how many checks are done.
pub(crate) async fn examine(
    resolved: &Resolved,
    settings: &session::Settings,
    mut done: impl FnMut(u32),
) -> Result<Value, Failure> {
    let run = Run::new(target(resolved)?).jobs(processors()).tap(tap()).name(describe(resolved));
    let mut count = 0;
    let checked = async {
        let run = run.run_with(|_: &Finding| {
            count += 1;
            done(count);
        });
        run.await.map_err(|error| Failure::new(Code::Unreachable, error.to_string()))
    };
    Ok(Journal::keep(resolved, settings, checked).await?.to_json(true))
}

/// How many programs this machine can start at once without any of them starting late.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, |it| it.get().clamp(2, 4))
}

/// The server requires a token, and the rest could not be checked.
fn barred(resolved: &Resolved, why: Option<&str>) -> Failure {
    let why = why.unwrap_or("a token is required");
    let what = format!("{}: {why}; nothing else can be checked", resolved.name);
    Failure::new(Code::Unauthorized, what)
        .with_remedy("log in with `bowline login`, or pass a token with --token or --header")
}

/// Where the server is.
fn target(resolved: &Resolved) -> Result<Target, Failure> {
    if let Some(recipe) = resolved.recipe() {
        return Ok(Target::Program(recipe));
    }
    let Location::Url { url, .. } = &resolved.location else {
        return Err(Failure::usage("neither a command nor a URL"));
    };
    let wrong = |why: String| Failure::usage(format!("{url}: {why}"));
    let parsed: Uri = url.parse().map_err(|error| wrong(format!("not a URL: {error}")))?;
    let web = resolved.web()?.build().map_err(|error| wrong(error.to_string()))?;
    let http = Http::new(web, parsed, resolved.header_map()?);
    Ok(Target::Http(Box::new(http.with_login(resolved.authorize()).with_tap(tap()))))
}

/// The server as the user names it, without passwords in a URL.
fn describe(resolved: &Resolved) -> String {
    match &resolved.location {
        Location::Command { program, args, .. } if resolved.from.is_none() => {
            let words = std::iter::once(program).chain(args);
            let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
            crate::redact::words(&words).0.join(" ")
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
