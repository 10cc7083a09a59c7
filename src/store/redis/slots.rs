//! The slots of a Redis Cluster: every key belongs to one, and every slot to a master.

use super::keys::hash_tag;
use super::url::Address;

/// How many slots a cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// The slot in which all keys of a limiter live.
pub(super) fn slot_of(limiter: &str) -> u16 {
    crc16(hash_tag(limiter).as_bytes()) % SLOTS
}

/// CRC-16/XMODEM, as the cluster specification has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Who has what, as one node or sentinel sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Grows with every change that was agreed upon: of two views the one with the higher epoch is newer.
    pub epoch: u64,
    /// Whoever tells it believes that all is well.
    pub settled: bool,
    /// The masters that have slots, with the first and the last slot of each range.
    pub parts: Vec<(Address, Vec<(u16, u16)>)>,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of("foo"), 12_182, "CLUSTER KEYSLOT foo");
    }
}
