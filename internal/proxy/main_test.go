package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envoy is the real Envoy that the tests run.
var envoy Binary

// initEnv makes the test binary the first process of a container.
const initEnv = "GATEHOUSE_TEST_INIT"

func TestMain(m *testing.M) {
	if spec := os.Getenv(helperEnv); spec != "" {
		os.Exit(superviseForParent(spec))
	}
	if os.Getenv(initEnv) != "" {
		os.Exit(beInit())
	}
	var err error
	envoy, err = Find(context.Background(), FindOptions{})
	if errors.Is(err, ErrNotFound) {
		envoy, err = Install(context.Background(), InstallOptions{Progress: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need the real Envoy:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
