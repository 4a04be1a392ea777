//! Hashes by content: short, and the same everywhere for ever. FNV-1a, of 64 and of 128 bits.
//!
//! The build script includes this file as well, so it must not use anything of the crate.

/// The 64-bit hash of nothing.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The hash of `bytes`.
pub fn hash(bytes: &[u8]) -> u64 {
    hash_more(START, bytes)
}

/// The hash of what gave `state`, followed by `bytes`.
pub fn hash_more(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, &byte| (state ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The hash of `bytes` with 128 bits, for what must never be taken for one another.
pub fn hash_long(bytes: &[u8]) -> u128 {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(START, |state, &byte| (state ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_standard() {
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(hash_more(hash(b"foo"), b"bar"), hash(b"foobar"));
        assert_eq!(hash_long(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
