//! How much disk space is left. A full disk causes misleading failures: linkers die of a bus
//! error, tests miss files.

use crate::process::{command, run};

/// With less than this, a failure may be caused by it.
const LITTLE: u64 = 1 << 20;

/// A hint beside a failure, if the disk is nearly full.
pub(crate) fn hint() -> Option<String> {
    let left = left(&run(command("df -Pk .")).output)?;
    (left < LITTLE).then(|| {
        format!(
            "help: only {} MiB are left on the disk, and a full test run needs 12 GiB",
            left >> 10
        )
    })
}

/// What `df -Pk` says is available, in KiB.
fn left(said: &str) -> Option<u64> {
    said.lines().last()?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_column_is_what_is_left() {
        let said = "$ df -Pk .\n\
            Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
            /dev/sda1        264045568 83870000  12000000      88% /\n";
        assert_eq!(left(said), Some(12_000_000));
        assert_eq!(left("$ df -Pk .\ncannot be started: no such file\n"), None);
    }
}
