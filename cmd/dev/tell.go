package main

import (
	"os"
	"slices"
	"strings"
	"text/template"

	"regent/emulators"
)

// exports returns the variables for other programs. With them regent and Google's client libraries
// find what runs here.
func (d *dev) exports() []string {
	events, members := d.topics()
	return slices.Concat([]string{"REGENT_SERVER=" + d.instances[0].url},
		d.emulators.Env(),
		[]string{"REGENT_STORE=" + d.spec(), "REGENT_EVENTS=" + events, "REGENT_MEMBERS=" + members})
}

// greeting is printed once everything runs. {{.Env}} and the rest are fields of the struct in tell.
var greeting = template.Must(template.New("").Parse(`
Regent runs twice on this machine, with the emulators of {{.Store}} and Pub/Sub, as it runs on Google Cloud.

  instance 1  {{.First}}/ui/  its log: {{.Dir}}/instance-1.log
  instance 2  {{.Second}}/ui/  its log: {{.Dir}}/instance-2.log

In each terminal of yours ("source {{.Dir}}/env" does it):
{{range .Env}}
  export {{.}}{{end}}

Try, in three terminals:

  1. lead, at the first:    {{.Regent}} run reports --candidate ann --lease 10s --server {{.First}} -- sh -c 'echo token $REGENT_FENCING_TOKEN; sleep 3600'
  2. watch, at the second:  {{.Regent}} watch reports --server {{.Second}}
  3. kill the first, and lead at the second once ann's lease has ended:
     kill -9 $(cat {{.Dir}}/instance-1.pid); {{.Regent}} run reports --candidate bob --server {{.Second}} -- sh -c 'echo token $REGENT_FENCING_TOKEN'

{{.Differs}} What else differs from Google Cloud is said by
"{{.Regent}} doctor --service {{.First}}", with these variables.
{{.Kept}}
Ctrl-C ends everything.

`))

// tell writes the variables to a file, and prints the greeting.
func (d *dev) tell() error {
	env := d.exports()
	if err := os.WriteFile(d.file("env"), []byte("export "+strings.Join(env, "\nexport ")+"\n"), 0o600); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return greeting.Execute(d.out, struct {
		Store, First, Second, Dir, Regent, Differs, Kept string
		Env                                              []string
	}{d.store.Title(), d.instances[0].url, d.instances[1].url, d.dir, d.regent, d.unmade(), d.kept(), env})
}

// unmade lists what Terraform creates on Google Cloud and this command does not.
func (d *dev) unmade() string {
	if d.store == emulators.KindFirestore {
		return "This emulator needs no indexes and knows no TTL policies, which Terraform makes."
	}
	return "This emulator has the tables, and never deletes the rows that are due."
}

// kept says how long the data lasts.
func (d *dev) kept() string {
	if d.emulators.Source(d.store) == emulators.SourceEnv {
		return "The data stay in the emulator, which ran before."
	}
	return "The data are lost at the end: the next run begins anew, and tokens begin at 1."
}
