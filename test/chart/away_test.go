package chart

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// away is how long no controller is there.
const away = 10 * time.Minute

// TestControllersAway protects clients from a control plane that has gone: for ten minutes, in which the container of each
// proxy ends once and starts again, each of 200 requests a second is answered.
func TestControllersAway(t *testing.T) {
	slow.Skip(t)
	in := openFleet(t, `{deployment: {replicas: 2}}`)
	address := in.programmed()
	in.serves(address)
	pods := in.readyPods(2)

	stop := in.load(20, map[string]protocol{"HTTP/1": in.http1(address, http.StatusMovedPermanently, brief)})
	in.kubectl("scale", "-n", "gatehouse-system", "deployment/gatehouse", "--replicas=0")
	in.kubectl("wait", "-n", "gatehouse-system", "--for=delete", "pods", "-l", "app.kubernetes.io/name=gatehouse", "--timeout=3m")
	back := time.After(away)
	for _, pod := range pods {
		if err := endContainer(pod); err != nil {
			t.Fatal(err)
		}
		in.within("the proxy of "+pod+" starts again", func() error {
			got := in.kubectl("get", "-n", "shop", "pod", pod, "-o", `jsonpath={.status.containerStatuses[?(@.name=="proxy")].restartCount} {.status.containerStatuses[?(@.name=="proxy")].ready}`)
			if got != "1 true" {
				return fmt.Errorf("restarts, and whether it is ready: %s", got)
			}
			return nil
		})
		if log := in.kubectl("logs", "-n", "shop", pod, "-c", "proxy"); !strings.Contains(log, "last good") {
			t.Errorf("%s doesn't say that it serves its last good configuration:\n%s", pod, log)
		}
	}
	<-back
	in.kubectl("scale", "-n", "gatehouse-system", "deployment/gatehouse", "--replicas=1")
	in.showsProxies(2)
	answered(t, stop)
}

// readyPods waits for so many pods of the Gateway that are ready.
func (in *running) readyPods(n int) (pods []string) {
	in.Helper()
	in.within("the Gateway's pods are ready", func() error {
		pods = strings.Fields(in.kubectl("get", "-n", "shop", "pods", "-o",
			`jsonpath={range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}{" "}{end}`))
		if len(pods) != n {
			return fmt.Errorf("ready are %v", pods)
		}
		return nil
	})
	return pods
}

// endContainer has the proxy of a pod end, as its container does when it fails. Its processes are this machine's.
func endContainer(pod string) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00HOSTNAME="+pod+"\x00")) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || !bytes.Contains(command, []byte("gatehouse\x00proxy\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGTERM)
	}
	return errors.New("there is no process of " + pod)
}
