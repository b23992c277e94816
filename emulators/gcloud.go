package emulators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// gcloud starts emulators of the Google Cloud SDK as children of this process.
type gcloud struct{ log io.Writer }

// lacks names the part that is missing on this machine: gcloud, the component, or Java.
func (gcloud) lacks(ctx context.Context, kind Kind) error {
	path, err := exec.LookPath("gcloud")
	if err != nil {
		return errors.New("gcloud is not on PATH")
	}
	if kind == KindSpanner && runtime.GOOS != "linux" {
		return errors.New("the SDK has the Spanner emulator for Linux only")
	}
	root, component := sdkRoot(ctx, path), partsOf[kind].component
	if _, err := os.Stat(filepath.Join(root, ".install", component+".manifest")); err != nil {
		return fmt.Errorf("the SDK in %s has no component %s", root, component)
	}
	if _, err := exec.LookPath("java"); err != nil && partsOf[kind].java {
		return errors.New("java is not on PATH")
	}
	return nil
}

// sdkRoot returns the directory of the SDK. A gcloud that is not a link into it, as some packages
// install it, is asked, which takes a second.
func sdkRoot(ctx context.Context, gcloud string) string {
	if real, err := filepath.EvalSymlinks(gcloud); err == nil {
		root := filepath.Dir(filepath.Dir(real))
		if _, err := os.Stat(filepath.Join(root, ".install")); err == nil {
			return root
		}
	}
	out, err := exec.CommandContext(ctx, gcloud, "info", "--format=value(installation.sdk_root)").Output()
	if err != nil {
		return filepath.Dir(gcloud)
	}
	return strings.TrimSpace(string(out))
}

// errPortTaken says that another process took the emulator's port first.
var errPortTaken = errors.New("its port is taken")

// start starts the emulator on its usual ports or, if they are taken, on free ones. If another
// process takes a port first, it tries others.
func (g gcloud) start(ctx context.Context, kind Kind) (*emulator, error) {
	const attempts = 3
	ports := usualPorts
	var err error
	for range attempts {
		var p reserved
		if p, err = ports(kind); err != nil {
			if p, err = freePorts(kind); err != nil {
				return nil, err
			}
		}
		ports = freePorts
		var e *emulator
		if e, err = g.startAt(ctx, kind, p.host, p.rest); err == nil {
			stop := e.stop
			e.stop = func(ctx context.Context) error {
				defer p.giveBack()
				return stop(ctx)
			}
			return e, nil
		}
		if p.giveBack(); !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, err
}

func (g gcloud) startAt(ctx context.Context, kind Kind, host, rest string) (*emulator, error) {
	child, err := StartGuard(kind.Command(host, rest), gcloudEnv(), g.log)
	if err != nil {
		return nil, err
	}
	if err := awaitChild(ctx, kind, host, child); err != nil {
		return nil, errors.Join(err, child.Stop(context.WithoutCancel(ctx)))
	}
	return &emulator{kind: kind, host: host, stop: child.Stop, ended: child.ended}, nil
}

// awaitChild blocks until the emulator answers. It returns an error if the emulator ends before, or
// finds its port taken, for which not every emulator exits.
func awaitChild(ctx context.Context, kind Kind, host string, child *Guard) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-child.output.portTaken:
			cancel(errPortTaken)
		case <-child.ended:
			cancel(child.died())
		case <-ctx.Done():
		}
	}()
	return awaitAnswer(ctx, kind, host)
}

// Command returns the command of the SDK that serves the kind at host. Spanner's also serves REST,
// at the port of rest.
func (k Kind) Command(host, rest string) []string {
	switch k {
	case KindFirestore:
		return []string{"gcloud", "emulators", "firestore", "start", "--host-port=" + host}
	case KindSpanner:
		_, port, _ := net.SplitHostPort(rest)
		return []string{"gcloud", "emulators", "spanner", "start", "--host-port=" + host, "--rest-port=" + port}
	default:
		return []string{"gcloud", "beta", "emulators", "pubsub", "start", "--host-port=" + host, "--project=regent"}
	}
}

// gcloudEnv keeps gcloud from prompting, reporting and looking for updates, and Java from the
// optimizing compiler and the threads of its collector: an emulator lives for minutes, and tests
// share its processors. What the user asks of Java comes after that, and counts more.
func gcloudEnv() []string {
	return []string{
		strings.TrimSpace("JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC " + os.Getenv("JDK_JAVA_OPTIONS")),
		"CLOUDSDK_CORE_DISABLE_PROMPTS=1",
		"CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true",
		"CLOUDSDK_CORE_DISABLE_FILE_LOGGING=true",
		"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=true",
	}
}

// reserved are two addresses on loopback that were free a moment ago.
type reserved struct {
	host, rest string
	giveBack   func() // idempotent
}

// usualPorts returns the addresses that the kind's emulator has wherever they are free: Go's test
// cache knows a result again only if the variables are the same that the test has read. A listener
// on a third port keeps them for this process, because two of Spanner's emulators would share one
// address without a word.
func usualPorts(kind Kind) (reserved, error) {
	first := 29410 + 10*slices.Index(Kinds(), kind)
	keep, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first))
	if err != nil {
		return reserved{}, err
	}
	p, err := listenable(fmt.Sprint("127.0.0.1:", first+1), fmt.Sprint("127.0.0.1:", first+2))
	if err != nil {
		return reserved{}, errors.Join(err, keep.Close())
	}
	p.giveBack = func() { keep.Close() }
	return p, nil
}

func freePorts(Kind) (reserved, error) { return listenable("127.0.0.1:0", "127.0.0.1:0") }

// listenable returns the addresses if this process can listen on both.
func listenable(host, rest string) (reserved, error) {
	a, err := net.Listen("tcp", host)
	if err != nil {
		return reserved{}, err
	}
	defer a.Close()
	b, err := net.Listen("tcp", rest)
	if err != nil {
		return reserved{}, err
	}
	defer b.Close()
	return reserved{a.Addr().String(), b.Addr().String(), func() {}}, nil
}
