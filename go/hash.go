package petal

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// The hashes of files, by their number in the header.
const (
	rapid       = 1
	sip13       = 2
	rapidKeyed  = 5
	secretApart = 6
)

const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0x9fb21c651e98df25
)

// hasher computes the hash of a key's bytes.
type hasher struct {
	// sip: SipHash-1-3 with the words of key; else rapidhash v3 with seed and secrets.
	sip     bool
	key     [2]uint64
	seed    uint64
	secrets [7]uint64
}

var rapidSecrets = [7]uint64{
	0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3, 0x4d5a2da51de1aa47,
	0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x90ed1765281c388c,
}

// The first 1024 bits of π after the point.
var piWords = [16]uint64{
	0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89,
	0x452821e638d01377, 0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917,
	0x9216d5d98979fb1b, 0xd1310ba698dfb5ac, 0x2ffd72dbd01adfb7, 0xb8e1afed6a267e96,
	0xba7c9045f12c7f99, 0x24a19947b3916cf7, 0x0801f2e2858efc16, 0x636920d871574e69,
}

// newHasher returns the hasher of a file; the secret is that of a file whose secret is apart.
func newHasher(algorithm uint16, seed [2]uint64, secret []byte) (hasher, error) {
	switch algorithm {
	case rapid:
		mixed := seed[0] ^ fold(seed[0]^rapidSecrets[2], rapidSecrets[1])
		return hasher{seed: mixed, secrets: rapidSecrets}, nil
	case rapidKeyed:
		h := hasher{seed: fold(seed[0]^piWords[7], seed[1]^piWords[15])}
		for i := range h.secrets {
			h.secrets[i] = fold(seed[0]^piWords[i], seed[1]^piWords[8+i])
		}
		return h, nil
	case secretApart:
		if secret == nil {
			return hasher{}, secretError("it is not in the file")
		}
		if len(secret) != 16 {
			return hasher{}, secretError("its length is not 16 bytes")
		}
		key := [2]uint64{word(secret, 0), word(secret, 8)}
		if siphash([]byte("petal secret"), key, 2, 4) != seed[0] {
			return hasher{}, secretError("the filter was built with another one")
		}
		return hasher{sip: true, key: key}, nil
	default:
		return hasher{sip: true, key: seed}, nil
	}
}

// hash returns the hash of a key.
func (h *hasher) hash(key []byte) uint64 {
	if h.sip {
		return siphash(key, h.key, 1, 3)
	}
	return h.rapidhash(key)
}

// bytesOf returns the bytes of a text without a copy. They must not be changed.
func bytesOf(text string) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer((*reflect.StringHeader)(unsafe.Pointer(&text)).Data)), len(text))
}

// fold returns the low word of a product XOR its high word.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func (h *hasher) rapidhash(key []byte) uint64 {
	var a, b uint64
	seed, length := h.seed, uint64(len(key))
	left := length
	switch {
	case length > 16:
		rest := key
		if length > 112 {
			lanes := [7]uint64{seed, seed, seed, seed, seed, seed, seed}
			for ; len(rest) > 112; rest = rest[112:] {
				for i := range lanes {
					lanes[i] = fold(word(rest, 16*uint64(i))^h.secrets[i], word(rest, 16*uint64(i)+8)^lanes[i])
				}
			}
			seed = lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3] ^ lanes[4] ^ lanes[5] ^ lanes[6]
			left = uint64(len(rest))
		}
		for at := uint64(0); at+16 < left; at += 16 {
			// Secrets 2, 2, 1, 1, 2, 1.
			secret := h.secrets[1]
			if at < 32 || at == 64 {
				secret = h.secrets[2]
			}
			seed = fold(word(rest, at)^secret, word(rest, at+8)^seed)
		}
		a, b = word(key, length-16)^left, word(key, length-8)
	case length >= 8:
		seed ^= left
		a, b = word(key, 0), word(key, length-8)
	case length >= 4:
		seed ^= left
		a, b = uint64(half(key, 0)), uint64(half(key, length-4))
	case length > 0:
		a, b = uint64(key[0])<<45|uint64(key[length-1]), uint64(key[length/2])
	}
	high, low := bits.Mul64(a^h.secrets[1], b^seed)
	return fold(low^0xaaaaaaaaaaaaaaaa, high^h.secrets[1]^left)
}

// siphash returns SipHash-c-d of a key's bytes.
func siphash(bytes []byte, key [2]uint64, c, d int) uint64 {
	s := sipState{
		key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573,
	}
	last := uint64(len(bytes)) << 56
	for ; len(bytes) >= 8; bytes = bytes[8:] {
		s.v3 ^= word(bytes, 0)
		s = s.rounds(c)
		s.v0 ^= word(bytes, 0)
	}
	for i, b := range bytes {
		last |= uint64(b) << (8 * i)
	}
	s.v3 ^= last
	s = s.rounds(c)
	s.v0 ^= last
	s.v2 ^= 0xff
	s = s.rounds(d)
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

type sipState struct{ v0, v1, v2, v3 uint64 }

func (s sipState) rounds(n int) sipState {
	for ; n > 0; n-- {
		s.v0 += s.v1
		s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
		s.v0 = bits.RotateLeft64(s.v0, 32)
		s.v2 += s.v3
		s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
		s.v0 += s.v3
		s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
		s.v2 += s.v1
		s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
		s.v2 = bits.RotateLeft64(s.v2, 32)
	}
	return s
}
