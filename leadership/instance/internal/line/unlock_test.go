package line_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// At an instance that hears of it.
func TestAnUnlockLetsTheNextInLineLeadWithinASecond(t *testing.T) {
	for name, lock := range map[string]func(*instance){
		"a long lease": func(i *instance) { i.leadsFor("ann", leadership.MaxLeaseDuration) },
		"a lock delay": func(i *instance) {
			i.locks(time.Hour)
			i.leads("ann")
			time.Sleep(lease + time.Second)
			_, err := i.Expire(i.Context(), jobs)
			require.NoError(i, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				asked, waits := w.instance(), w.instance()
				lock(asked)
				bob := waits.waits(request("bob"))
				time.Sleep(5 * time.Second)
				asked.unlocks()
				bob.after(5*time.Second, 6*time.Second)
				bob.leads()
			})
		})
	}
}
