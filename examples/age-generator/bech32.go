package plugin

const charset = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// bech32 encodes bytes according to BIP 173: a prefix in lower case, a 1, five bits per character, and a checksum.
func bech32(prefix string, bytes []byte) string {
	checked := []byte{}
	for _, letter := range []byte(prefix) {
		checked = append(checked, letter>>5)
	}
	checked = append(checked, 0)
	for _, letter := range []byte(prefix) {
		checked = append(checked, letter&31)
	}
	text := prefix + "1"
	add := func(five uint32) {
		checked = append(checked, byte(five))
		text += string(charset[five])
	}
	for bit := 0; bit < 8*len(bytes); bit += 5 {
		pair := uint32(bytes[bit/8]) << 8
		if bit/8+1 < len(bytes) {
			pair |= uint32(bytes[bit/8+1])
		}
		add(pair >> (11 - bit%8) & 31)
	}
	checksum := polymod(append(checked, 0, 0, 0, 0, 0, 0)) ^ 1
	for shift := 25; shift >= 0; shift -= 5 {
		add(checksum >> shift & 31)
	}
	return text
}

// polymod computes the checksum of BIP 173.
func polymod(values []byte) uint32 {
	remainder := uint32(1)
	for _, value := range values {
		top := remainder >> 25
		remainder = remainder&0x1ffffff<<5 ^ uint32(value)
		for bit, generator := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>bit&1 == 1 {
				remainder ^= generator
			}
		}
	}
	return remainder
}
