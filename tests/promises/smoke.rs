use crate::support::*;
use fairq::*;
use std::time::Duration;

fn basics(url: &str) {
    let client = Client::open(url).unwrap();
    let lim = client.limiter("a").limit(2).open().unwrap();
    let p1 = lim.acquire(&Request::new()).unwrap();
    let p2 = lim.acquire(&Request::new()).unwrap();
    assert!(p2.fence() > p1.fence());
    assert!(p1.is_valid());
    assert!(lim.try_acquire(&Request::new()).unwrap().is_none());
    let e = lim.acquire(&Request::new().max_wait(Duration::from_millis(50))).unwrap_err();
    assert!(matches!(e, Error::TimedOut { .. }), "{e:?}");
    let c = Completions::new();
    for i in 0..5 {
        lim.acquire_start(&Request::new().label("x"), &c, i).unwrap();
    }
    eventually("5 wait", Duration::from_secs(5), || lim.status().unwrap().waiting == 5);
    println!("{:?}", lim.status().unwrap());
    println!("{:?}", lim.waiters().unwrap());
    p1.release().unwrap();
    let d = c.poll(10, Duration::from_secs(5));
    assert_eq!(d.len(), 1);
    assert_eq!(d[0].token, 0);
    println!("{:?}", d);
    drop(d);
    drop(p2);
    let mut got = vec![];
    while got.len() < 4 {
        got.extend(c.poll(10, Duration::from_secs(5)).into_iter().map(|d| {
            d.result.unwrap();
            d.token
        }));
    }
    assert_eq!(got, vec![1, 2, 3, 4]);
    eventually("idle", Duration::from_secs(5), || lim.status().unwrap().used == 0);
    client.close(Duration::ZERO).unwrap();
}

#[test]
fn memory() {
    basics("memory:smoke")
}
#[test]
fn redis() {
    let s = Server::start(Server::default_flavor());
    basics(&s.url());
    println!("{}", s.log());
}
