// Package cloud looks at what only a real Google Cloud project can show, and no emulator has: the
// indexes of a Firestore database, the regions of a topic, and the invokers of a Cloud Run service.
//
// It also signs statements with a key of Cloud KMS. All other calls read, through the REST APIs,
// with the application default credentials. A check that lacks a right, or gets no clear answer,
// says that it could not check; it never says ok.
package cloud
