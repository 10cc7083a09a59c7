//! What a limiter has left on a server, read without its scripts.

use super::Server;

/// Every member and field of the limiter's keys that names a ticket.
pub fn tickets_in(server: &Server, name: &str) -> Vec<String> {
    let mut conn = server.conn();
    let hash = format!("fq:{{{name}}}");
    let fields: Vec<String> = redis::cmd("HKEYS").arg(&hash).query(&mut conn).expect("list the hash");
    let others = |field: &&String| field.starts_with("i:") || field.starts_with("d:");
    let tickets = fields.iter().filter(|field| field.contains(':') && !others(field));
    let mut found: Vec<String> = tickets.map(|ticket| format!("hash {ticket}")).collect();
    for part in ["queue", "held"] {
        let mut range = redis::cmd("ZRANGE");
        let members: Vec<String> =
            range.arg(format!("{hash}:{part}")).arg(0).arg(-1).query(&mut conn).expect("list a key");
        found.extend(members.into_iter().filter(|member| member != ".").map(|member| format!("{part} {member}")));
    }
    found
}
