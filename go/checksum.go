package petal

// The default secret of XXH3.
var xxhSecret = []byte("" +
	"\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe\x7c\x01\x81\x2c\xf7\x21\xad\x1c\xde\xd4\x6d\xe9\x83\x90\x97\xdb" +
	"\x72\x40\xa4\xa4\xb7\xb3\x67\x1f\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78\x82\x5a\xd0\x7d\xcc\xff\x72\x21" +
	"\xb8\x08\x46\x74\xf7\x43\x24\x8e\xe0\x35\x90\xe6\x81\x3a\x26\x4c\x3c\x28\x52\xbb\x91\xc3\x00\xcb" +
	"\x88\xd0\x65\x8b\x1b\x53\x2e\xa3\x71\x64\x48\x97\xa2\x0d\xf9\x4e\x38\x19\xef\x46\xa9\xde\xac\xd8" +
	"\xa8\xfa\x76\x3f\xe3\x9c\x34\x3f\xf9\xdc\xbb\xc7\xc7\x0b\x4f\x1d\x8a\x51\xe0\x4b\xcd\xb4\x59\x31" +
	"\xc8\x9f\x7e\xc9\xd9\x78\x73\x64\xea\xc5\xac\x83\x34\xd3\xeb\xc3\xc5\x81\xa0\xff\xfa\x13\x63\xeb" +
	"\x17\x0d\xdd\x51\xb7\xf0\xda\x49\xd3\x16\x55\x26\x29\xd4\x68\x9e\x2b\x16\xbe\x58\x7d\x47\xa1\xfc" +
	"\x8f\xf8\xb8\xd1\x7a\xd0\x31\xce\x45\xcb\x3a\x8f\x95\x16\x04\x28\xaf\xd7\xfb\xca\xbb\x4b\x40\x7e")

// prime is the first prime of XXH64.
const prime = 0x9e3779b185ebca87

// stripesInBlock is after how many stripes of 64 bytes the accumulators are scrambled.
const stripesInBlock = (192 - 64) / 8

// checksum returns XXH3-64 with seed 0. A file has no part of 1 to 16 bytes with a checksum, so the special cases of
// XXH3 for these lengths are missing: headers have 248 bytes or more, data whole lines of 64 bytes.
func checksum(data []byte) uint64 {
	n := uint64(len(data))
	sum := n * prime
	switch {
	case n == 0:
		return 0x2d06800538d394c2
	case n <= 128:
		for i := uint64(0); i <= (n-1)/32; i++ {
			sum += mix16(data, 16*i, 32*i) + mix16(data, n-16*(i+1), 32*i+16)
		}
		return avalanche(sum)
	case n <= 240:
		for i := uint64(0); i < 8; i++ {
			sum += mix16(data, 16*i, 16*i)
		}
		sum = avalanche(sum)
		for i := uint64(8); i < n/16; i++ {
			sum += mix16(data, 16*i, 16*(i-8)+3)
		}
		return avalanche(sum + mix16(data, n-16, 136-17))
	}
	acc := [8]uint64{
		0xc2b2ae3d, prime, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
		0x85ebca77c2b2ae63, 0x85ebca77, 0x27d4eb2f165667c5, 0x9e3779b1,
	}
	for i := uint64(0); i < (n-1)/64; i++ {
		accumulate(&acc, data[64*i:], 8*(i%stripesInBlock))
		if i%stripesInBlock == stripesInBlock-1 {
			for j := range acc {
				acc[j] = (acc[j] ^ acc[j]>>47 ^ word(xxhSecret, 128+8*uint64(j))) * 0x9e3779b1
			}
		}
	}
	accumulate(&acc, data[n-64:], 128-7)
	for i := uint64(0); i < 8; i += 2 {
		sum += fold(acc[i]^word(xxhSecret, 11+8*i), acc[i+1]^word(xxhSecret, 19+8*i))
	}
	return avalanche(sum)
}

func mix16(data []byte, at, secretAt uint64) uint64 {
	return fold(word(data, at)^word(xxhSecret, secretAt), word(data, at+8)^word(xxhSecret, secretAt+8))
}

func avalanche(sum uint64) uint64 {
	sum = (sum ^ sum>>37) * 0x165667919e3779f9
	return sum ^ sum>>32
}

func accumulate(acc *[8]uint64, data []byte, secretAt uint64) {
	stripe, secret := data[:64], xxhSecret[secretAt:secretAt+64]
	for i := uint64(0); i < 8; i += 2 {
		first, second := word(stripe, 8*i), word(stripe, 8*i+8)
		a, b := first^word(secret, 8*i), second^word(secret, 8*i+8)
		acc[i] += second + (a&0xffffffff)*(a>>32)
		acc[i+1] += first + (b&0xffffffff)*(b>>32)
	}
}
