//! The payload of `DUMP` and `RESTORE` for a value of a module.
//!
//! Bytes: the type of the value, the number of the data type with the version of its encoding, the
//! fields and an end mark, the version of the format, and a checksum. Source: Redis' documentation of
//! RDB files, and payloads of the running server.

#![expect(clippy::big_endian_bytes, reason = "the server writes lengths so")]

use crate::server::FieldWriter;

/// The type of a value of a module.
const MODULE_VALUE: u8 = 7;
// Marks before fields, and at the end.
const END: u8 = 0;
const UNSIGNED: u8 = 2;
const DOUBLE: u8 = 4;
const BYTES: u8 = 5;
/// A version of the format that every supported server reads.
const FORMAT_VERSION: u16 = 9;

/// Returns the payload of a value of a data type; `save` writes its fields.
pub(crate) fn payload(
    type_name: &str,
    version: u16,
    save: impl FnOnce(&mut PayloadWriter),
) -> Vec<u8> {
    let mut out = PayloadWriter(vec![MODULE_VALUE]);
    out.length(type_number(type_name, version));
    save(&mut out);
    let PayloadWriter(mut bytes) = out;
    bytes.push(END);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc64(&bytes).to_le_bytes());
    bytes
}

/// Returns the number of a data type: six bits for each of the nine characters of its name, and ten
/// bits for the version of its encoding.
fn type_number(name: &str, version: u16) -> u64 {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    name.bytes().fold(0, |number, byte| number << 6 | u64::from(digit(byte))) << 10
        | u64::from(version)
}

/// CRC-64/REDIS: Jones' polynomial, reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 }
        })
    })
}

/// Writes the fields of a value.
pub(crate) struct PayloadWriter(Vec<u8>);

impl PayloadWriter {
    fn length(&mut self, number: u64) {
        match number {
            0..64 => self.0.push(number as u8),
            64..16_384 => self.0.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
            _ => {
                self.0.push(0x81);
                self.0.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
}

impl FieldWriter for PayloadWriter {
    fn unsigned(&mut self, number: u64) {
        self.0.push(UNSIGNED);
        self.length(number);
    }

    fn double(&mut self, number: f64) {
        self.0.push(DOUBLE);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.push(BYTES);
        self.length(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_has_the_server_format() {
        // The check value of the algorithm.
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let made = payload("TopK-TYPE", 0, |out| {
            out.unsigned(1);
            out.unsigned(300);
            out.unsigned(70_000);
            out.double(0.5);
            out.bytes(b"x\0");
        });
        let expected = [
            &[7, 0x81, 0x4e, 0x8a, 0x4a, 0xf9, 0x36, 0x0f, 0x10, 0x00][..],
            &[2, 1, 2, 0x41, 0x2c, 2, 0x81, 0, 0, 0, 0, 0, 1, 0x11, 0x70],
            &[4, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 5, 2, b'x', 0, 0, 9, 0],
        ]
        .concat();
        assert_eq!(made[..made.len() - 8], expected);
    }
}
