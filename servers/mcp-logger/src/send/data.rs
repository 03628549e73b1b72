//! `--sd-id` and `--sd-param`: a parameter belongs to the element before it, so their order counts.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

use crate::structured_data::StructuredData;

/// Structured data from a command line.
#[derive(Debug, Clone, Default)]
pub(super) struct DataArgs(StructuredData);

const ID: &str = "sd-id";
const PARAM: &str = "sd-param";

impl DataArgs {
    /// The data, if there is any.
    pub(super) fn data(&self) -> Option<StructuredData> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }

    fn read(matches: &ArgMatches) -> Result<Self, Error> {
        let mut words: Vec<(usize, &str, &String)> = [ID, PARAM]
            .into_iter()
            .flat_map(|name| {
                let values = matches.get_many::<String>(name).unwrap_or_default();
                let positions = matches.indices_of(name).unwrap_or_default();
                positions.zip(values).map(move |(position, value)| (position, name, value))
            })
            .collect();
        words.sort_unstable();
        let mut data = StructuredData::new();
        let mut element = None;
        for (_, name, value) in words {
            if name == ID {
                data.entry(value.clone()).or_default();
                element = Some(value.clone());
                continue;
            }
            let id = element.clone().ok_or_else(|| usage("--sd-param must follow an --sd-id"))?;
            let (name, value) = value
                .split_once('=')
                .ok_or_else(|| usage("--sd-param must have the form NAME=VALUE"))?;
            // Values may be quoted, as logger(1) requires.
            let bare = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let value = bare.unwrap_or(value).to_owned();
            data.entry(id).or_default().insert(name.to_owned(), value);
        }
        Ok(Self(data))
    }
}

fn usage(text: &str) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{text}\n"))
}

impl clap::FromArgMatches for DataArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::read(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::read(matches)?;
        Ok(())
    }
}

impl clap::Args for DataArgs {
    fn augment_args(command: Command) -> Command {
        let many = |name, value, help| {
            Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
        };
        command
            .arg(many(ID, "NAME", "Element of structured data (RFC 5424), such as deploy@32473"))
            .arg(many(
                PARAM,
                "NAME=VALUE",
                "Parameter of the preceding element, such as stage=prod",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
