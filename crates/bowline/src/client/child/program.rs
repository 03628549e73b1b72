//! Which file a command's program is.
//!
//! Unix finds programs by their names. So does Windows, but only those that end with `.exe`: `npx`
//! there is `npx.cmd`, which a shell finds through `PATHEXT`, and a program has to find itself.
//! Arguments of such scripts are quoted by the standard library, which rejects those that the
//! script could misread.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program under the name that the system can start: on Windows, the path of the first file in
/// `PATH` that is `program` with an extension of `PATHEXT`, such as `npx.cmd` for `npx`. On other
/// systems, and where there is no such file, `program` itself.
///
/// `path` is the `PATH` of the program's environment, if it is not that of this process.
#[must_use]
pub fn find_program(program: impl AsRef<OsStr>, path: Option<&OsStr>) -> OsString {
    let program = program.as_ref();
    let extensions = extensions();
    if extensions.is_empty() {
        return program.to_owned();
    }
    let path = path.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = search(Path::new(program), &extensions, &folders, Path::is_file);
    found.map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

/// The file names by which the system knows a program: the name itself, and on Windows also with
/// each extension of `PATHEXT`.
#[must_use]
pub fn program_names(program: impl AsRef<OsStr>) -> Vec<OsString> {
    names(program.as_ref(), &extensions())
}

/// The extensions of programs that need not be named, each with its dot; none except on Windows.
fn extensions() -> Vec<OsString> {
    if !cfg!(windows) {
        return Vec::new();
    }
    let listed = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    let ours = |extension: &&str| {
        // The standard library starts these; others need their interpreters.
        [".com", ".exe", ".bat", ".cmd"].iter().any(|known| known.eq_ignore_ascii_case(extension))
    };
    listed.split(';').filter(ours).map(OsString::from).collect()
}

fn names(program: &OsStr, extensions: &[OsString]) -> Vec<OsString> {
    let is_complete = |extension: &OsString| {
        let (program, extension) = (program.to_string_lossy(), extension.to_string_lossy());
        program.to_ascii_lowercase().ends_with(&extension.to_ascii_lowercase())
    };
    if extensions.is_empty() || extensions.iter().any(is_complete) {
        return vec![program.to_owned()];
    }
    let extended = extensions.iter().map(|extension| {
        let mut name = program.to_owned();
        name.push(extension);
        name
    });
    extended.collect()
}

fn search(
    program: &Path,
    extensions: &[OsString],
    folders: &[PathBuf],
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let names = names(program.as_os_str(), extensions);
    if program.components().count() > 1 {
        return names.into_iter().map(PathBuf::from).find(|path| is_file(path));
    }
    let paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    paths.into_iter().find(|path| is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_as_a_shell_finds_it() {
        let extensions = [".COM", ".EXE", ".BAT", ".CMD"].map(OsString::from);
        let folders = ["first", "second"].map(PathBuf::from);
        let files = ["first/npx.CMD", "first/npx", "second/npx.EXE", "second/node.EXE", "a/b.BAT"];
        let find = |program: &str| {
            let is_file = |path: &Path| files.iter().any(|file| Path::new(file) == path);
            let found = search(Path::new(program), &extensions, &folders, is_file)?;
            Some(found.to_string_lossy().replace('\\', "/"))
        };
        assert_eq!(find("npx").as_deref(), Some("first/npx.CMD"));
        assert_eq!(find("node").as_deref(), Some("second/node.EXE"));
        assert_eq!(find("node.EXE").as_deref(), Some("second/node.EXE"));
        assert_eq!(find("a/b").as_deref(), Some("a/b.BAT"));
        assert_eq!(find("python3"), None);
    }

    #[test]
    fn a_dot_in_a_name_is_not_an_extension() {
        let extensions = [".EXE", ".CMD"].map(OsString::from);
        let names = |program: &str| names(OsStr::new(program), &extensions);
        assert_eq!(names("python3.11"), ["python3.11.EXE", "python3.11.CMD"]);
        assert_eq!(names("npx.cmd"), ["npx.cmd"]);
    }

    #[cfg(not(windows))]
    #[test]
    fn other_systems_find_programs_by_their_names() {
        assert_eq!(find_program("npx", None), "npx");
        assert_eq!(program_names("npx"), ["npx"]);
    }
}
