package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What provisioner-mode and static-mode have in common. Their flags, and the errors
// of these, are a contract with whoever starts them.

// controllerDomain is what names of controllers begin with.
const controllerDomain = "gatehouse.dev"

// classFlags say which GatewayClass a process is for.
type classFlags struct{ controller, name string }

func (f *classFlags) define(cmd *cobra.Command) {
	cmd.Flags().Var(checked{&f.controller, checkControllerName}, "gateway-ctlr-name",
		"controllerName of the GatewayClass, as DOMAIN/PATH; the domain is "+controllerDomain)
	cmd.Flags().Var(checked{&f.name, checkClass}, "gatewayclass", "name of the GatewayClass; there is one for a process")
	// The errors are those of the flags' own checks, without words of ours.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{withFlag(err)} })
	environment(cmd)
	fromEnvironment := cmd.PreRunE
	_ = cmd.MarkFlagRequired("gateway-ctlr-name")
	_ = cmd.MarkFlagRequired("gatewayclass")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnvironment(cmd, args); err != nil {
			return err
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// checked is a flag's text with the rules that it keeps.
type checked struct {
	value *string
	check func(string) error
}

func (c checked) String() string {
	if c.value == nil { // the flag package asks a zero value
		return ""
	}
	return *c.value
}

func (c checked) Type() string { return "string" }

func (c checked) Set(s string) error {
	if err := c.check(s); err != nil {
		return err
	}
	*c.value = s
	return nil
}

var errUnset = errors.New("must be set")

var controllerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$`)

func checkControllerName(s string) error {
	domain, _, found := strings.Cut(s, "/")
	switch {
	case s == "":
		return errUnset
	case !found:
		return errors.New("invalid format; must be DOMAIN/PATH")
	case domain != controllerDomain:
		return fmt.Errorf("invalid domain: %s; domain must be: %s", domain, controllerDomain)
	case !controllerName.MatchString(s):
		return fmt.Errorf("invalid gateway controller name: %s; expected format is DOMAIN/PATH", s)
	}
	return nil
}

func checkClass(s string) error {
	if s == "" {
		return errUnset
	}
	if problems := validation.IsDNS1123Subdomain(s); len(problems) > 0 {
		return fmt.Errorf("invalid format: %s", strings.Join(problems, "; "))
	}
	return nil
}

func checkGateway(s string) error {
	if s == "" {
		return errUnset
	}
	parts := strings.Split(s, "/")
	if len(parts) != 2 {
		return errors.New("invalid format; must be NAMESPACE/NAME")
	}
	if problems := validation.IsDNS1123Label(parts[0]); len(problems) > 0 {
		return fmt.Errorf("invalid namespace name: %s", strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(parts[1]); len(problems) > 0 {
		return fmt.Errorf("invalid resource name: %s", strings.Join(problems, "; "))
	}
	return nil
}

// podIP is the address of the pod, which is that of its Gateway.
func podIP() (netip.Addr, error) {
	const name = "POD_IP"
	text := os.Getenv(name)
	if text == "" {
		return netip.Addr{}, usageError{fmt.Errorf("error validating %s environment variable: IP address must be set", name)}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, usageError{fmt.Errorf("error validating %s environment variable: %q must be a valid IP address", name, text)}
	}
	return addr, nil
}

// podVariable is what the pod's manifest says of the pod.
func podVariable(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", usageError{fmt.Errorf("error validating %s environment variable: %w", name, errUnset)}
	}
	return value, nil
}

// logFlags say what is logged, and how.
type logFlags struct{ format, level string }

func (f *logFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", "json", "text or json")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	complete(cmd, "log-format", logFormats...)
	complete(cmd, "log-level", logLevels...)
}

func (f *logFlags) check() error {
	if err := oneOf("log-format", f.format, logFormats...); err != nil {
		return err
	}
	return oneOf("log-level", f.level, logLevels...)
}

func (f *logFlags) logger() *slog.Logger { return newLogger(os.Stderr, f.format, f.level) }
