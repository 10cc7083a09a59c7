//! What the command prints: tables, times, colours on a terminal.

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;

use crate::exit::{Failure, Outcome};

/// Writes to stdout. `fairq list | head` ends quietly: whoever closes the pipe has read enough.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints one JSON document and ends the command.
pub fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    print(&(text + "\n"))?;
    Ok(std::process::ExitCode::SUCCESS)
}

/// Width and height of the terminal at stdout, when it is one.
pub fn size() -> Option<(usize, usize)> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    // SAFETY: the call fills the structure, which is plain data.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    };
    size.filter(|s| s.ws_col > 0).map(|s| (s.ws_col.into(), s.ws_row.into()))
}

/// Colours, or none where nobody sees them.
#[derive(Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// Respects `NO_COLOR` and dumb terminals.
    pub fn stdout() -> Paint {
        let wanted = std::env::var_os("NO_COLOR").is_none() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        Paint(wanted && std::io::stdout().is_terminal())
    }

    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.with("31;1", text)
    }

    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Columns as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text, each line indented by `indent` spaces. The last column is not padded.
    pub fn render(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|c| self.width(c)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| pad(cell, width));
            let line = cells.collect::<Vec<_>>().join("  ");
            text += &format!("{}{}\n", " ".repeat(indent), line.trim_end());
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| visible(cell)).max().unwrap_or(0)
    }
}

/// Pads to a visible width, which colours do not add to.
pub fn pad(cell: &str, width: usize) -> String {
    format!("{cell}{}", " ".repeat(width.saturating_sub(visible(cell))))
}

/// Text from others (labels, descriptions) without what could steer the terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A duration, or what stands for none.
pub fn or_dash(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "-".into(), fairq::format_duration)
}

/// Nanoseconds for people.
pub fn nanos(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..100_000 => format!("{:.1}us", ns as f64 / 1e3),
        _ => fairq::format_duration(Duration::from_nanos(ns)),
    }
}

fn visible(text: &str) -> usize {
    let mut inside = false;
    let mut count = 0;
    for c in text.chars() {
        match c {
            '\x1b' => inside = true,
            'm' if inside => inside = false,
            _ if !inside => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_whatever_its_colours() {
        let mut table = Table::new(&["name", "n"]);
        table.row(vec![Paint(true).good("ab"), "1".into()]);
        assert_eq!(table.render(1), " name  n\n \x1b[32mab\x1b[0m    1\n");
    }

    #[test]
    fn labels_of_others_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\n"), "a?[2Jb?");
    }
}
