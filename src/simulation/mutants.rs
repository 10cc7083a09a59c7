//! Whether the tests would notice a mistake in the scripts: each comparison turned, each number moved, each statement left
//! out, one at a time, and the conformance test and some seeds run on it. What survives is either no mistake, or
//! one that nobody looks for.
//!
//! Of 1,032, 42 survived when this was last looked at, in three minutes, and none of them changed more than what a call costs, or what
//! happens within one microsecond: a bound that is lower than it need be, a write that says the same.
//!
//! `cargo test --release --all-features --lib mutants -- --ignored --nocapture`; `FAIRQ_MUTANTS=dispatch` takes one file's only.

use std::collections::HashMap;
use std::rc::Rc;

use super::faults::Faults;
use super::redis::Rewrite;
use super::run::run;
use super::{expiry, lost, presence};
use crate::store::conformance::{compare_directly, compare_simulated};
use crate::store::redis::test_access;

/// What is looked for, and what is put in its place.
const TURNS: [(&str, &str); 16] = [
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" == ", " ~= "),
    (" ~= ", " == "),
    (" and ", " or "),
    (" or ", " and "),
    (" + ", " - "),
    (" - ", " + "),
    (" + 1", " + 2"),
    (" * ", " / "),
    ("max(", "min("),
    ("min(", "max("),
    ("true", "false"),
    ("false", "true"),
];

/// A file with one mistake.
struct Mutant {
    file: String,
    line: usize,
    what: String,
    text: String,
}

fn mutants() -> Vec<Mutant> {
    let only = std::env::var("FAIRQ_MUTANTS").unwrap_or_default();
    let files = test_access::script_files().into_iter();
    files
        .filter(|(file, _)| file.contains(&only) && file != "selftest")
        .flat_map(|(file, text)| of_file(&file, text))
        .collect()
}

fn of_file(file: &str, text: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let code = line.split("--").next().unwrap_or_default();
        let mut others: Vec<String> = Vec::new();
        for (from, to) in TURNS {
            let places = code.match_indices(from).map(|(at, _)| at);
            others.extend(places.map(|at| format!("{}{to}{}", &code[..at], &code[at + from.len()..])));
        }
        if is_statement(code.trim()) {
            others.push(String::new());
        }
        for other in others {
            let what = format!("{} => {}", code.trim(), if other.is_empty() { "(nothing)" } else { other.trim() });
            let mut changed: Vec<&str> = lines.clone();
            changed[place] = &other;
            all.push(Mutant { file: file.to_owned(), line: place + 1, what, text: changed.join("\n") });
        }
    }
    all
}

/// A line that can be left out. What does not compile then is no mutant.
fn is_statement(code: &str) -> bool {
    let opens = ["if ", "for ", "while ", "else", "end", "do", "local function", "return"];
    !code.is_empty() && !opens.iter().any(|word| code.starts_with(word))
}

fn rewrite(mutant: &Mutant) -> Rewrite {
    let sources: HashMap<String, String> =
        test_access::scripts_with_other(&mutant.file, &mutant.text).into_iter().collect();
    Rc::new(move |source| sources.get(source).cloned().unwrap_or_else(|| source.to_owned()))
}

fn compiles(mutant: &Mutant) -> bool {
    let lua = mlua::Lua::new();
    let scripts = test_access::scripts_with_other(&mutant.file, &mutant.text);
    scripts.iter().all(|(_, source)| lua.load(source.as_str()).into_function().is_ok())
}

/// Who notices, if anybody does.
fn noticed(mutant: &Mutant, cases: u32, seeds: u64) -> Option<String> {
    let directly = || {
        compare_directly(&rewrite(mutant));
        presence::all(&rewrite(mutant));
        expiry::all(&rewrite(mutant));
        lost::all(&rewrite(mutant));
    };
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(directly)).is_err()
        || compare_simulated(cases, Some(rewrite(mutant))).is_err()
    {
        return Some("conformance".into());
    }
    let broken = |seed: u64| run(seed, Faults::ALL, Some(rewrite(mutant)), false).broken;
    (0..seeds).find_map(|seed| broken(seed).map(|what| format!("seed {seed}: {what:.60}")))
}

#[test]
#[ignore = "it takes three minutes when built for release, and many otherwise"]
fn mutants_do_not_survive() {
    std::panic::set_hook(Box::new(|_| {}));
    let all: Vec<Mutant> = mutants().into_iter().filter(compiles).collect();
    let (mut by_model, mut by_seeds) = (0, 0);
    let none = Mutant { file: String::new(), line: 0, what: String::new(), text: String::new() };
    assert_eq!(noticed(&none, 150, 3), None, "scripts without a mistake");
    println!("{} mutants", all.len());
    for mutant in &all {
        match noticed(mutant, 150, 3) {
            Some(who) if who == "conformance" => by_model += 1,
            Some(who) => {
                by_seeds += 1;
                println!("by {who}: {}:{}: {}", mutant.file, mutant.line, mutant.what);
            }
            None => println!("SURVIVES {}:{}: {}", mutant.file, mutant.line, mutant.what),
        }
    }
    println!("{} mutants: the model noticed {by_model}, the simulation {by_seeds} more", all.len());
}
