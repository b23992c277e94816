// Package apply brings elections to the configuration that files declare.
//
//	files -- Read --> elections -- Look --> steps -- Step.Do, one after another --> done
//
// The files are the whole truth about the elections in them: a member that is left out has its
// default. Elections that are in no file are left alone, unless they are pruned.
//
// Nothing is written before all files have been read and all elections been looked at. Each write
// is conditional on what was seen then: its revision, or that the election was never seen. A term
// that began or ended since raises the revision too, so a write that finds another one looks again.
// It goes on if the configuration is the one that was seen; otherwise it is a Conflict. So no one's
// change is undone by a caller who has not seen it.
package apply
