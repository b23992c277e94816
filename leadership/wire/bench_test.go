package wire

import "testing"

const renewal = `{"candidateId":"agent-7","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":1}`

func BenchmarkDecodeRenewal(b *testing.B) {
	b.ReportAllocs()
	body := []byte(renewal)
	for b.Loop() {
		var r LeaseRequest
		if err := Decode(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeLease(b *testing.B) {
	b.ReportAllocs()
	l := NewLease(held())
	for b.Loop() {
		if _, err := Marshal(&l); err != nil {
			b.Fatal(err)
		}
	}
}
