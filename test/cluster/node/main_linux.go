package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

const usage = `usage: node COMMAND [--name NAME] ...
  up [--channel experimental|standard]   build what is missing, and start
  exec COMMAND...                        run a command in the cluster's network, with KUBECONFIG and kubectl
  image FILE...                          load docker archives
  status                                 what runs
  down                                   remove it
  build                                  build only
`

func main() {
	// A namespace is entered by a thread: for exec it must be this one.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	name := flags.String("name", cluster.Name(), "the cluster's name (GATEHOUSE_CLUSTER)")
	channel := flags.String("channel", "experimental", "the Gateway API's channel: experimental or standard")
	_ = flags.Parse(args[1:]) // it exits
	if *name == "" || strings.Trim(*name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("name %q: want lower-case letters, digits and dashes", *name)
	}
	dir, err := cluster.Dir(*name)
	if err != nil {
		return err
	}
	if args[0] != "status" && os.Getuid() != 0 {
		return fmt.Errorf("%s needs root: namespaces, mounts and containers are made", args[0])
	}
	switch args[0] {
	case "build":
		_, err := build(ctx)
		return err
	case "up":
		return up(ctx, *name, dir, *channel)
	case "down":
		return down(ctx, *name, dir)
	case "status":
		return status(dir)
	case "exec":
		return enter(dir, flags.Args())
	case "image":
		return load(ctx, dir, flags.Args())
	case initCommand:
		return initialize(ctx, dir)
	}
	return fmt.Errorf("no command %q\n%s", args[0], usage)
}

func status(dir string) error {
	s, err := cluster.ReadState(dir)
	if err != nil {
		return err
	}
	fmt.Printf("running: %s channel, brought up from %s; logs in %s/log\n", s.Channel, s.Checkout, dir)
	return nil
}

// enter becomes a command in the cluster's network.
func enter(dir string, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("exec needs a command")
	}
	s, err := cluster.ReadState(dir)
	if err != nil {
		return err
	}
	env, err := environment(dir)
	if err != nil {
		return err
	}
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if err := join(s.PID); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, args, os.Environ()))
}

// environment is what programs find the cluster by.
func environment(dir string) ([]string, error) {
	cache, err := cluster.Cache()
	if err != nil {
		return nil, err
	}
	return []string{
		"KUBECONFIG=" + dir + "/admin.conf",
		"PATH=" + cache + "/bin:" + os.Getenv("PATH"),
	}, nil
}
