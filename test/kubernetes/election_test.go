package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	door "regent/httpapi/kubernetes"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
)

// serve serves the store through a fresh instance.
func serve(t *testing.T, store *memory.Store) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(api(t, store))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// api returns the handler of a fresh instance on the store.
func api(t *testing.T, store *memory.Store) http.Handler {
	t.Helper()
	i, err := instance.New(instance.Config{Store: store, Journal: store, Alone: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); i.Run(ctx) }()
	d := door.New(door.Config{Service: i, Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, store) }})
	t.Cleanup(func() { cancel(); <-ran })
	doors := map[string]httpapi.Door{}
	for _, path := range door.Paths() {
		doors[path] = httpapi.Door{Handler: d, Refuse: door.Refuse}
	}
	return httpapi.New(httpapi.Config{Service: i, Doors: doors})
}

func clientTo(t *testing.T, url string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: url})
	require.NoError(t, err)
	return c
}

func TestALeaderAndAnInformerGoOnOverARestartOfTheServer(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Config{})
	var current atomic.Value
	current.Store(api(t, store))
	var listed, asList atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("sendInitialEvents") == "true" {
			listed.Add(1)
		} else if strings.HasSuffix(r.URL.Path, "/leases") && r.Method == http.MethodGet && !q.Has("watch") {
			asList.Add(1)
		}
		current.Load().(http.Handler).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	factory := informers.NewSharedInformerFactory(clientTo(t, server.URL), 0)
	seen := make(chan string, 100)
	tell := func(o any) {
		l := o.(*coordination.Lease)
		seen <- l.Name + " " + *l.Spec.HolderIdentity
	}
	informer := factory.Coordination().V1().Leases().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }}); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	expect := func(want string) {
		t.Helper()
		for <-seen != want {
		}
	}
	leases := clientTo(t, server.URL).CoordinationV1().Leases("default")
	claim := func(name string) *coordination.Lease {
		t.Helper()
		holder, seconds := "ann", int32(3600)
		wanted := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}}
		l, err := leases.Create(t.Context(), wanted, metav1.CreateOptions{})
		for range 10 { // the connection may be one that was cut
			if err == nil || apierrors.IsAlreadyExists(err) {
				return l
			}
			l, err = leases.Create(t.Context(), wanted, metav1.CreateOptions{})
		}
		require.NoError(t, err)
		return l
	}
	first := claim("first")
	expect("first ann")
	current.Store(api(t, store)) // an instance that remembers nothing
	server.CloseClientConnections()
	renewed, err := leases.Update(t.Context(), first, metav1.UpdateOptions{})
	for range 10 { // as an elector does: its connection was cut
		if err == nil {
			break
		}
		if first, err = leases.Get(t.Context(), "first", metav1.GetOptions{}); err == nil {
			renewed, err = leases.Update(t.Context(), first, metav1.UpdateOptions{})
		}
	}
	if err != nil || *renewed.Spec.LeaseTransitions != 0 {
		t.Errorf("the leader's renewal after the restart: %+v, %v", renewed, err)
	}
	claim("second")
	expect("second ann")
	if listed.Load() == 0 || asList.Load() != 0 {
		t.Errorf("the informer asked for all Leases by %d watches and %d lists, want watches alone", listed.Load(), asList.Load())
	}
}

func TestAManagerOfControllerRuntimeLeadsByTheLinesOfTheReadme(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("election_test.go")
	require.NoError(t, err)
	for line := range strings.Lines(block(t, "go")) {
		if !strings.Contains(string(source), "\t"+line) {
			t.Errorf("this line of the README is not tried: %s", line)
		}
	}
	store := memory.New(memory.Config{})
	kubeconfig := filepath.Join(t.TempDir(), "regent")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"clusters":[{"name":"r","cluster":{"server":%q}}],"contexts":[{"name":"r","context":{"cluster":"r"}}],"current-context":"r"}`, serve(t, store).URL), 0o600))
	cluster := &rest.Config{Host: "http://127.0.0.1:1"} // of which the election needs nothing
	options := ctrl.Options{LeaderElectionReleaseOnCancel: true, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "my-operator", "default"
	options.RenewDeadline = new(8 * time.Second)
	options.LeaderElectionLabels = map[string]string{"regent/process": "a"}
	options.LeaderElectionConfig, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	manager, err := ctrl.NewManager(cluster, options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-manager.Elected()
		cancel()
	}()
	if err := manager.Start(ctx); err != nil {
		t.Errorf("the manager: %v", err)
	}
	if s, err := store.Get(t.Context(), "k8s.default.my-operator"); err != nil || s.Record.Token != 1 || s.Record.LeaderID != "" {
		t.Errorf("the election is %+v, %v; want it released after its first term", s, err)
	}
}
