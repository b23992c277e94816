package file

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// digest tells whether a file holds exactly the state of its last commit. It is the sum of the
// hashes of all keys and values, each with its bucket, so that a change costs only the hashes of
// what it changes, and the layout of bbolt's pages does not matter.
//
// It is stored, with the number of its transaction, in that transaction. So it also reveals a file
// whose contents are all of an earlier transaction though its meta page is of a later one.
type digest [sha256.Size / 8]uint64

func (d *digest) add(bucket, key, sealed []byte) {
	for i, n := range hash(bucket, key, sealed) {
		d[i] += n
	}
}

// drop undoes add; a nil value is one that is not there.
func (d *digest) drop(bucket, key, sealed []byte) {
	if sealed == nil {
		return
	}
	for i, n := range hash(bucket, key, sealed) {
		d[i] -= n
	}
}

func hash(bucket, key, sealed []byte) (sum digest) {
	text := make([]byte, 0, 512)
	text = append(append(text, bucket...), 0) // no bucket's name has a zero byte in it
	text = binary.BigEndian.AppendUint32(text, uint32(len(key)))
	text = append(append(text, key...), sealed...)
	h := sha256.Sum256(text)
	for i := range sum {
		sum[i] = binary.BigEndian.Uint64(h[8*i:])
	}
	return sum
}

// encode is the persisted form: the transaction's number, then the sum.
func (d *digest) encode(transaction int) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, 8+8*len(d)), uint64(transaction))
	for _, n := range d {
		value = binary.BigEndian.AppendUint64(value, n)
	}
	return value
}

var errNotWhole = errors.New("its contents are not those of its last commit: a part is missing, was changed, or is older")

// whole returns an error unless the file holds the state of its newest transaction.
func (t *transaction) whole() error {
	t.digest = t.sum()
	stored, err := t.get(metaBucket, digestKey)
	if err != nil || !bytes.Equal(stored, t.digest.encode(t.tx.ID()-1)) {
		return errNotWhole
	}
	return nil
}

// sum computes the digest of everything in the file except the digest itself.
func (t *transaction) sum() (sum digest) {
	for _, bucket := range buckets() {
		c := t.tx.Bucket(bucket).Cursor()
		for key, sealed := c.First(); key != nil; key, sealed = c.Next() {
			if !bytes.Equal(key, digestKey) || !bytes.Equal(bucket, metaBucket) {
				sum.add(bucket, key, sealed)
			}
		}
	}
	return sum
}

// sign stores the digest of the new contents. It is the last write of a transaction.
func (t *transaction) sign() {
	value := t.digest.encode(t.tx.ID())
	t.err = cmp.Or(t.err, t.tx.Bucket(metaBucket).Put(digestKey, seal(digestKey, value)))
}
