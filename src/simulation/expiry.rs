//! The keys of a limiter expire when nobody has used it for its idle time (P12), and not while somebody does.

use super::presence::{IDLE, LEASE, Scene, acquire, sync};
use super::redis::Rewrite;
use crate::settings::Change;
use crate::store::Verb;
use crate::store::redis::test_access;

/// Redis counts milliseconds here.
const MS: u64 = 1000;

fn exists(scene: &mut Scene) -> bool {
    scene.redis.set_wall(scene.now);
    test_access::keys("l").iter().all(|key| {
        let count = if key.ends_with('}') { "HLEN" } else { "ZCARD" };
        scene.redis.execute(&[count.into(), key.clone().into()]) != ::redis::Value::Int(0)
    })
}

/// All of these on scripts that may be others than ours.
pub(super) fn all(rewrite: &Rewrite) {
    unused(Some(rewrite));
    used(Some(rewrite));
    longer_lease(Some(rewrite));
}

fn unused(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.call("ann", acquire());
    scene.now += IDLE - MS;
    assert!(exists(&mut scene));
    scene.now += MS;
    assert!(!exists(&mut scene));
}

/// The expiry is pushed ahead now and then, not with every call.
fn used(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.call("ann", acquire());
    let before = scene.redis.expiries();
    for _ in 0..100 {
        scene.now += LEASE / 3;
        scene.call("ann", sync());
        scene.call("ann", sync());
        assert!(exists(&mut scene));
    }
    let pushed = (scene.redis.expiries() - before) / 4;
    assert!((40..=100).contains(&pushed), "pushed ahead {pushed} times");
    scene.now += IDLE * 7 / 8 - MS;
    assert!(exists(&mut scene));
}

/// An operator's lease is longer than the idle time allows: that counts at once.
fn longer_lease(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.call("ann", acquire());
    scene.now += MS;
    let lease = std::time::Duration::from_micros(2 * LEASE);
    scene.call("ann", Verb::Configure(Change::new().lease(lease)));
    scene.now += 4 * LEASE - MS;
    assert!(exists(&mut scene));
    scene.now += MS;
    assert!(!exists(&mut scene));
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unused_limiter_expires_after_its_idle_time() {
        super::unused(None);
    }

    #[test]
    fn a_used_limiter_does_not_expire() {
        super::used(None);
    }

    #[test]
    fn a_longer_lease_postpones_the_expiry_at_once() {
        super::longer_lease(None);
    }
}
