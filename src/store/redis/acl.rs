//! The rights that a Redis user needs.

use super::script;

/// What the client sends besides its scripts.
const OUTSIDE: [&str; 4] = ["info", "subscribe", "evalsha", "eval"];

/// The rule for `ACL SETUSER` that gives a user of fairq's all it needs, and nothing else. Not among it: `SELECT`, for a
/// URL that names a database; `SCAN` and `CONFIG GET`, which only `fairq list` and `fairq doctor` use.
pub fn redis_acl() -> String {
    let mut commands: Vec<String> = OUTSIDE.iter().map(|command| (*command).to_owned()).collect();
    for script in script::all() {
        for command in script.commands() {
            let command = match command {
                "PUBSUB" => "pubsub|numsub".to_owned(), // the one subcommand that is called
                command => command.to_lowercase(),
            };
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    let rights: Vec<String> = commands.iter().map(|command| format!("+{command}")).collect();
    format!("resetkeys ~fq:* resetchannels &fq:* -@all {}", rights.join(" "))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_rule() {
        assert!(include_str!("../../../README.md").contains(&redis_acl()), "README.md lacks:\n{}", redis_acl());
    }
}
