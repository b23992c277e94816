package main

import (
	"regexp"
	"time"
)

// object is one of JSON.
type object = map[string]any

// spdx returns the SBOM. Licenses are not in it: the binary prints their texts itself.
func (a artifact) spdx(at time.Time) object {
	const unknown = "NOASSERTION"
	pack := func(id, name, version string) object {
		return object{
			"SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": unknown, "filesAnalyzed": false,
			"licenseConcluded": unknown, "licenseDeclared": unknown, "copyrightText": unknown,
		}
	}
	const root = "SPDXRef-regent"
	main := pack(root, a.name, a.version)
	main["primaryPackagePurpose"] = "APPLICATION"
	main["checksums"] = []object{{"algorithm": "SHA256", "checksumValue": a.sha256}}
	main["comment"] = "regent licenses prints the licenses of all modules"
	packages := []object{main}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root}}
	for _, m := range a.deps {
		id := "SPDXRef-" + regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(m.path, "-")
		p := pack(id, m.path, m.version)
		p["primaryPackagePurpose"] = "LIBRARY"
		p["externalRefs"] = []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": m.purl()}}
		if m.sum != "" {
			p["comment"] = "dirHash (h1 of go.sum): " + m.sum
		}
		packages = append(packages, p)
		relations = append(relations, object{"spdxElementId": root, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": id})
	}
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
		"name": a.name + " " + a.version, "documentNamespace": "urn:regent:sbom:" + a.sha256,
		"creationInfo": object{"created": at.UTC().Format(time.RFC3339), "creators": []string{"Tool: regent-make-sbom"}},
		"packages":     packages, "relationships": relations,
	}
}

// provenance returns the statement. It says what this machine did, and is worth as much as the
// machine and the way that the statement came.
func (a artifact) provenance(b build, s source) object {
	commit := object{"name": "source", "digest": object{"gitCommit": s.commit}}
	if s.origin != "" {
		commit["uri"] = "git+" + s.origin + "@" + s.commit
	}
	materials := []object{commit}
	for _, m := range a.deps {
		material := object{"uri": m.purl()}
		if m.sum != "" {
			material["digest"] = object{"dirHash": m.sum}
		}
		materials = append(materials, material)
	}
	return object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []object{{"name": a.name, "digest": object{"sha256": a.sha256}}},
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            "urn:regent:make-sbom:v1",
				"externalParameters":   object{"commit": s.commit, "version": a.version},
				"internalParameters":   object{"command": b.command(a.name), "environment": b.Env, "goVersion": a.goVersion},
				"resolvedDependencies": materials,
			},
			"runDetails": object{
				"builder": object{"id": "urn:regent:make-sbom", "version": object{"go": a.goVersion}},
			},
		},
	}
}
