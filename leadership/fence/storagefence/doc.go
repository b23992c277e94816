// Package storagefence keeps the writes of former leaders out of the objects of a Cloud Storage bucket. It speaks the JSON API through an
// *http.Client of the caller's, which adds the credentials, and needs no SDK.
//
// # The mark is part of the object
//
// Each object that is written here has its mark in its own metadata, so that both change in one request or not at all:
//
//	regent-election        planner
//	regent-fencing-token   34
//	regent-write-id        chosen at random by each write, so that it knows itself again
//
// A write reads the mark and the object's generation, decides as fence.Mark.Admit does, and uploads the content with the raised mark on the
// condition that the object is still at that generation (ifGenerationMatch; 0 for an object that is not there):
//
//	leader 33                   object                leader 34
//	   | read: generation 7, 33    |                     |
//	   | paused                    | <------- read: 7, 33|
//	   |                           | <- upload 34, if 7 -| generation 8
//	   |- upload 33, if 7 -------> |                     |
//	   |  412; read: 8, 34         |                     |
//	   |  TOKEN_STALE              |                     |
//
// Every upload makes a new generation, and none is used twice. So an upload that comes late, however late, finds another
// generation than the one it was decided on, and changes nothing.
//
// # When a reply is lost
//
// An upload whose reply was lost, or was a 408 or a 5xx, may have been made. The write then reads the object again: if it finds its own id
// there, it was; if the generation is still the one that the upload was to replace, it uploads again on the same condition, so that only one
// of the two can succeed. If the object has been changed by somebody else, nobody can tell whether the upload came before, and
// the error is OutcomeUnknown. No write is made twice.
//
// Replies of 408, 429 and 5xx, and requests without a reply, are tried again after 1 s, 2 s, 4 s and so on up to 32 s, or less by chance, as Google's
// guidance has it, or after what Retry-After says; a 412 after a fraction of that. Config.Attempts and the context bound it: a leader gives a
// context that ends with its lease. An object bears about one write a second.
//
// # Deleting
//
// An object that is gone has forgotten its mark, and a former leader may write it anew. Delete therefore leaves a tombstone: an empty object with
// the mark and regent-deleted, which Read tells from an empty content. Whoever removes it for good, with other tools or by a lifecycle
// rule, should know that no former leader is left; the same holds for an object with content. A bucket's versions and soft deletion are no
// help here: the mark that counts is that of the live object.
//
// # What else writes to the object
//
// An object without a mark, written by other tools, admits any leader, and has a mark from then on. A mark that is not as it is written here, or
// half of one, admits nobody (RecordCorrupt), until a person has put it right. A tool that overwrites an object takes its mark away,
// so nothing but this package should write to what it guards. An upload replaces an object as a whole, with all its metadata.
//
// Contents are held in memory and uploaded in one request, up to Config.MaxSize; resumable uploads are out of scope. Those who need more write
// the data to an object of a name that is used once, and then a pointer to it here.
package storagefence
