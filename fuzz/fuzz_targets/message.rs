//! Messages are hints. Whatever somebody else publishes on an instance's channel, without knowing the limiter's epoch, grants
//! nothing, takes nothing away and breaks nothing.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use fairq::{Client, Completions, Limiter, Permit, Request, Ticket, TicketState};
use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;

const NAME: &str = "a|b,c d{e}";

/// A limiter of which one permit is held and one request waits.
struct Scene {
    _client: Client,
    limiter: Limiter,
    permit: Permit,
    waiting: Ticket,
    done: Completions,
    epoch: u64,
}

static SCENE: LazyLock<Scene> = LazyLock::new(|| {
    let client = Client::open("memory:message").expect("open");
    let limiter = client.limiter(NAME).limit(1).open().expect("open");
    let permit = limiter.acquire(&Request::new()).expect("a free slot");
    let done = Completions::new();
    let waiting = limiter.acquire_start(&Request::new().wait_forever(), &done, 1).expect("start");
    let epoch = limiter.status().expect("status").epoch;
    Scene { _client: client, limiter, permit, waiting, done, epoch }
});

fuzz_target!(|bytes: &[u8]| {
    let scene = &*SCENE;
    let mut input = Input::new(bytes);
    let payload = match input.choose(4) {
        0 => input.rest().to_vec(),
        _ => forged(&mut input, scene),
    };
    if knows_the_epoch(&payload, scene.epoch) {
        return; // only the server and the instances know it
    }
    fairq::fuzzing::deliver(&scene.limiter, &payload);
    assert!(scene.permit.is_valid());
    assert_eq!(scene.waiting.state(), TicketState::Pending);
    assert!(scene.done.poll(1, Duration::ZERO).is_empty());
    let status = scene.limiter.status().expect("status");
    assert_eq!((status.used, status.holders, status.waiting, status.limit), (1, 1, 1, 1));
});

/// Almost right: the limiter and the tickets are those of the scene, or others.
fn forged(input: &mut Input<'_>, scene: &Scene) -> Vec<u8> {
    let epoch = match input.choose(3) {
        0 => input.number(),
        1 => scene.epoch + 1,
        _ => scene.epoch - 1,
    };
    let mut text = epoch.to_string();
    for _ in 0..input.choose(40) {
        let no = input.number() % 4;
        text += &match input.choose(6) {
            0 => format!(" g,{no},{},{}", input.number(), input.number()),
            1 => format!(" x,{no},{}", input.number()),
            2 => format!(" r,{no}"),
            3 => format!(" v,{no}"),
            4 => " p".into(),
            _ => format!(" {}", input.text()),
        };
    }
    let [hash, queue, ..] = fairq::fuzzing::keys_of(NAME);
    let other = fairq::fuzzing::keys_of(&input.text());
    let key = [hash, queue, other[0].clone(), input.text()][input.choose(4)].clone();
    format!("{text}|{key}").into_bytes()
}

fn knows_the_epoch(payload: &[u8], epoch: u64) -> bool {
    let text = String::from_utf8_lossy(payload);
    text.split([' ', '|']).next().and_then(|word| word.parse().ok()) == Some(epoch)
}
