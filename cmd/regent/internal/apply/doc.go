// Package apply brings elections to the configuration that files declare.
//
//	files -- Read --> elections -- Look --> steps -- Step.Do, one after another --> done
//
// The files completely determine the elections in them: a member that is left out has its default.
// Elections that are in no file are left alone, unless they are pruned.
//
// Nothing is written before all files and all elections have been read. Each write is conditional
// on the revision that was read, or on the election never having existed. A term that began or
// ended since raises the revision too, so if the revision differs, the election is read again. If
// the configuration is unchanged, the write is repeated; otherwise it is a Conflict. So no change
// by another caller is undone unseen.
package apply
