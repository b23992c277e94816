// Package storagefence keeps the writes of former leaders out of the objects of a Cloud Storage
// bucket. It reads and writes them by two methods, Objects, and brings in no client.
//
// # The bucket
//
// With a client of storage.NewClient, of cloud.google.com/go/storage, these are the two methods:
//
//	type objects struct{ *storage.BucketHandle }
//
//	func (b objects) Read(ctx context.Context, name string) (storagefence.Version, error) {
//		o := b.Object(name)
//		a, err := o.Attrs(ctx)
//		if err != nil {
//			return storagefence.Version{}, err
//		}
//		return storagefence.Version{
//			Generation:     storagefence.Generation(a.Generation),
//			Metageneration: a.Metageneration,
//			Metadata:       a.Metadata,
//			Open: func() (io.ReadCloser, error) {
//				return o.Generation(a.Generation).NewReader(ctx)
//			},
//		}, nil
//	}
//
//	func (b objects) Write(ctx context.Context, name string, replaces storagefence.Version,
//		metadata map[string]string, content []byte,
//	) (storagefence.Generation, error) {
//		only := storage.Conditions{
//			GenerationMatch:     int64(replaces.Generation),
//			MetagenerationMatch: replaces.Metageneration,
//		}
//		if replaces.Generation == 0 {
//			only = storage.Conditions{DoesNotExist: true}
//		}
//		w := b.Object(name).If(only).NewWriter(ctx)
//		w.ChunkSize = 0 // one request, whatever the size
//		w.CRC32C, w.SendCRC32C = crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)), true
//		w.ContentType, w.Metadata = "application/json", metadata
//		_, err := w.Write(content)
//		if err = cmp.Or(w.Close(), err); err != nil {
//			return 0, err
//		}
//		return storagefence.Generation(w.Attrs().Generation), nil
//	}
//
//	bucket := client.Bucket("ledger").Retryer(storage.WithPolicy(storage.RetryNever))
//	guarded, err := storagefence.New(storagefence.Config{Objects: objects{bucket}})
//
// RetryNever, because the fence repeats requests itself, and reads the object before it repeats an
// upload. Do not use storage.NewGRPCClient: its errors are not *googleapi.Error.
//
// # The mark is part of the object
//
// Each object that this package writes has its mark in its own metadata, so that both change in one
// request or not at all:
//
//	regent-election        planner
//	regent-fencing-token   34
//	regent-write-id        random for each write, so that a write recognises itself
//
// A write reads the mark and the object's generation, decides as fence.Mark.Admit does, and uploads
// the content with the raised mark on the condition that the object is still at that generation,
// or still does not exist:
//
//	leader 33                   object                leader 34
//	   | read: generation 7, 33    |                     |
//	   | paused                    | <------- read: 7, 33|
//	   |                           | <- upload 34, if 7 -| generation 8
//	   |- upload 33, if 7 -------> |                     |
//	   |  412; read: 8, 34         |                     |
//	   |  TOKEN_STALE              |                     |
//
// Every upload creates a new generation, and none is reused. So a late upload, however late, finds
// another generation than the one it was decided on, and changes nothing.
//
// # When a reply is lost
//
// An upload whose reply was lost, or was a 408 or a 5xx, may have been made. The write then reads
// the object again: if it finds its own id, the upload was made; if the generation is still the one
// that the upload was to replace, it uploads again on the same condition, so that only one of the
// two can succeed. If another writer has changed the object, it is unknown whether the upload came
// before, and the error is OutcomeUnknown. No write is made twice.
//
// Replies of 408, 429 and 5xx, and requests without a reply, are retried after 1 s, 2 s, 4 s and so
// on up to 32 s, reduced at random as Google recommends, or after Retry-After; a 412 after a
// fraction of that. Config.Attempts and the context limit the retries: pass a context that ends
// with the lease. An object supports about one write a second.
//
// # Deleting
//
// A deleted object has lost its mark, and a former leader may write it again. Delete therefore
// leaves a tombstone: an empty object with the mark and regent-deleted, which Read distinguishes
// from an empty content. Remove a tombstone for good, with other tools or by a lifecycle rule, only
// when no former leader is left; the same holds for an object with content. A bucket's versions and
// soft deletion do not help here: the mark that counts is that of the live object.
//
// # Other writers of the object
//
// An object without a mark, written by other tools, admits any leader, and has a mark from then on.
// An invalid or incomplete mark admits no leader (RecordCorrupt) until a person has repaired it. A
// tool that overwrites an object removes its mark, so only this package should write to guarded
// objects. An upload replaces an object as a whole, with all its metadata.
//
// Contents are held in memory and uploaded in one request, up to Config.MaxSize; resumable uploads
// are not supported. For larger data, write it to an object with a unique name, and then write a
// pointer to it here.
package storagefence
