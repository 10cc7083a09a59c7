//! How the targets read their bytes: as a row of small decisions. When they run out, every decision is 0, which ends things.

pub mod reply;

/// The bytes that are left.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// One of `0..count`.
    pub fn choose(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    pub fn pick<'t, T: ?Sized>(&mut self, from: &'t [&'t T]) -> &'t T {
        from[self.choose(from.len())]
    }

    /// Small ones, the edges that numbers break at, and any.
    pub fn number(&mut self) -> u64 {
        const EDGES: [u64; 8] = [0, 1, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, i64::MAX as u64, u64::MAX];
        match self.byte() {
            small @ 0..=199 => small.into(),
            edge @ 200..=239 => EDGES[usize::from(edge) % EDGES.len()],
            _ => self.take(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        }
    }

    /// Up to 64 bytes, whatever they are.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = self.choose(65);
        self.take(length)
    }

    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
