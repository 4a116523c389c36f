package plugin

import (
	"encoding/hex"
	"testing"
)

// Some of the valid strings in BIP 173.
func TestBech32MatchesBIP173(t *testing.T) {
	for text, digits := range map[string]string{
		"a12uel5l": "",
		"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw": "00443214c74254b635cf84653a56d7c675be77df",
	} {
		bytes, _ := hex.DecodeString(digits)
		prefix := text[:len(text)-7-len(bytes)*8/5]
		if encoded := bech32(prefix, bytes); encoded != text {
			t.Errorf("%s, not %s", encoded, text)
		}
	}
}
