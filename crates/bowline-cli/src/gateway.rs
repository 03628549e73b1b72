//! `bowline gateway`: many servers behind one door.

mod beside;
mod file;
mod front;
mod otlp;
mod read;
mod running;
mod secret;

use std::net::SocketAddr;
use std::path::PathBuf;

use bowline::{Server, with_causes};
#[cfg(unix)]
use bowline_gateway::gateway::admin;
use bowline_gateway::gateway::admin::Question;
use bowline_gateway::gateway::verify;
use clap::{Args, Subcommand};

use self::front::Front;
use self::read::{Read, read};
use self::running::{Given, serve};
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
#[cfg(unix)]
use crate::text::json_line;

/// Serve many servers at one address, for clients of every revision
///
/// FILE is a client's own config file, as it is (mcpServers and its relatives), or TOML of the
/// gateway's own; there can be several, and later ones override earlier ones. docs/gateway.md has
/// the reference. Without an address, the gateway serves one client on standard input and output.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    /// Config files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Serve HTTP at this address, whatever the files say; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The admin socket, whatever the files say
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Subcommands>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Read config files and print the resulting configuration, without secrets; start nothing
    Check {
        /// Config files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON schema of the gateway's own files, for editors
    Schema,
    /// Show the status of a running gateway
    Status(Socket),
    /// Make a running gateway read its files again
    Reload(Socket),
    /// Make a running gateway finish running requests, then exit
    Drain(Socket),
    /// Show what the rules of a running gateway decide for a caller and a tool
    Explain {
        /// The user, as tokens name them; `-` is anyone without a token
        caller: String,
        /// The tool, by its full name or as server/name
        tool: String,
        /// A group that the user is in; may be repeated
        #[arg(long)]
        group: Vec<String>,
        /// The client program that the token names
        #[arg(long)]
        client: Option<String>,
        #[command(flatten)]
        socket: Socket,
    },
    /// Check that no line of an audit log was removed or changed
    Verify {
        /// The audit log
        file: PathBuf,
    },
}

#[derive(Args)]
struct Socket {
    /// The admin socket of the gateway
    #[arg(long, value_name = "SOCKET")]
    socket: PathBuf,
}

/// Writes a line for people.
pub(super) fn say(line: &str) {
    use std::io::Write;
    // There is nobody to tell when standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{}", crate::text::line(line));
}

impl GatewayArgs {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(root);
        match self.command {
            None if self.files.is_empty() => {
                let remedy = "bowline gateway FILE…, such as the config file of a client";
                Err(Failure::usage("which servers?").with_remedy(remedy))
            }
            None => {
                let given = Given { listen: self.listen, socket: self.socket };
                serve(self.files, given).await
            }
            Some(Subcommands::Check { files }) => {
                let read = load(files).await.map_err(Failure::usage)?;
                read.missing().map_or(Ok(()), Err).map_err(Failure::usage)?;
                read.plan(None).map_err(Failure::usage)?;
                let front = Front::of(&read.settings);
                drop(front.guard(Server::new("trial", "1"), None).map_err(Failure::usage)?);
                otlp::destination(&read).map_err(Failure::usage)?;
                screen.print(&shown(&read));
                screen.finish()
            }
            Some(Subcommands::Schema) => {
                let schema = bowline::schemars::schema_for!(file::File);
                screen.print(&format!("{:#}\n", schema.to_value()));
                screen.finish()
            }
            Some(Subcommands::Status(at)) => ask(&screen, &at, Question::Status).await,
            Some(Subcommands::Reload(at)) => ask(&screen, &at, Question::Reload).await,
            Some(Subcommands::Drain(at)) => ask(&screen, &at, Question::Drain).await,
            Some(Subcommands::Explain { caller, tool, group, client, socket }) => {
                let subject = Some(caller).filter(|it| it != "-");
                let question = Question::Explain { subject, groups: group, client, tool };
                ask(&screen, &socket, question).await
            }
            Some(Subcommands::Verify { file }) => {
                let (lines, last) = verify(&file).map_err(|error| {
                    let what = format!("{}: {}", file.display(), with_causes(&error));
                    Failure::new(Code::Unreachable, what)
                })?;
                screen.print(&format!("{lines} records, the last with the digest {last}\n"));
                screen.finish()
            }
        }
    }
}

/// Reads the files, and the documents that they name. Commands that print secrets take their time,
/// elsewhere.
async fn load(files: Vec<PathBuf>) -> Result<Read, String> {
    let read = tokio::task::spawn_blocking(move || read(&files)).await;
    let mut read = read.unwrap_or_else(|error| Err(error.to_string()))?;
    read.describe().await?;
    Ok(read)
}

#[cfg(unix)]
async fn ask(screen: &Screen, at: &Socket, question: Question) -> Result<(), Failure> {
    let path = at.socket.display();
    let answered = admin::ask(&at.socket, &question).await.map_err(|error| {
        Failure::new(Code::Unreachable, format!("no gateway answers at {path}: {error}"))
    })?;
    let answer = answered.map_err(|why| Failure::new(Code::Unreachable, why))?;
    // It names what servers offer, in their words.
    for line in format!("{answer:#}").lines() {
        screen.print(&format!("{}\n", json_line(line, true)));
    }
    screen.finish()
}

#[cfg(not(unix))]
async fn ask(_: &Screen, _: &Socket, _: Question) -> Result<(), Failure> {
    Err(Failure::usage("the admin socket exists on Unix only"))
}

/// The merged configuration, with origins and without secrets.
fn shown(read: &Read) -> String {
    let (mut text, redactor) = (String::new(), read.redactor());
    let mut line = |it: String| {
        // Details of the line above are indented.
        text += if it.starts_with(' ') { "  " } else { "" };
        text += &crate::text::line(&redactor.text(&it));
        text.push('\n');
    };
    for note in &read.notes {
        line(format!("note: {note}"));
    }
    match read.settings.listen {
        Some(address) => line(format!("listens on {address}")),
        None => line("serves standard input and output".to_owned()),
    }
    for it in &read.servers {
        let prefix = it.alias().unwrap_or(&it.key);
        line(format!("{} ({}): {}", it.key, it.file.display(), it.about));
        line(format!("  names: {prefix}__*"));
        it.details().into_iter().for_each(|it| line(format!("  {it}")));
    }
    for it in &read.commands {
        line(format!("tools__{}: {}", it.name, it.run.join(" ")));
    }
    for it in &read.rules {
        let who = [("subject", &it.subjects), ("group", &it.groups), ("client", &it.clients)];
        let who = who.into_iter().filter(|(_, names)| !names.is_empty());
        let who = who.map(|(what, names)| format!("{what} {}", names.join(" or ")));
        let who: Vec<_> = who.collect();
        let who = if who.is_empty() { "anyone".to_owned() } else { who.join(", ") };
        line(format!("rule {} for {who}", it.name));
        for (what, patterns) in [("allow", &it.allow), ("deny", &it.deny), ("confirm", &it.confirm)]
        {
            if !patterns.is_empty() {
                line(format!("  {what}: {}", patterns.join(", ")));
            }
        }
    }
    text
}
