package main

import (
	"strings"
	"testing"
)

// The flags of provisioner-mode and static-mode, and what they say of a mistake,
// are a contract with whoever starts them.
func TestModeFlags(t *testing.T) {
	const good, goodClass = "--gateway-ctlr-name=gatehouse.dev/x", "--gatewayclass=c"
	for _, c := range []struct {
		modes string
		args  []string
		want  string
	}{
		{"provisioner", nil, `required flag(s) "gateway-ctlr-name", "gatewayclass" not set`},
		{"provisioner", []string{good}, `required flag(s) "gatewayclass" not set`},
		{"provisioner", []string{goodClass}, `required flag(s) "gateway-ctlr-name" not set`},
		{"provisioner", []string{"--gateway-ctlr-name="}, `invalid argument "" for "--gateway-ctlr-name" flag: must be set`},
		{"provisioner", []string{"--gateway-ctlr-name=x"}, `invalid argument "x" for "--gateway-ctlr-name" flag: invalid format; must be DOMAIN/PATH`},
		{"provisioner", []string{"--gateway-ctlr-name=example.com/x"}, `invalid argument "example.com/x" for "--gateway-ctlr-name" flag: invalid domain: example.com; domain must be: gatehouse.dev`},
		{"provisioner", []string{"--gateway-ctlr-name=gatehouse.dev/"}, `flag: invalid gateway controller name: gatehouse.dev/; expected format is DOMAIN/PATH`},
		{"provisioner", []string{"--gateway-ctlr-name=gatehouse.dev/$%^ "}, `flag: invalid gateway controller name: gatehouse.dev/$%^ ; expected format is DOMAIN/PATH`},
		{"provisioner", []string{"--gatewayclass="}, `invalid argument "" for "--gatewayclass" flag: must be set`},
		{"provisioner", []string{"--gatewayclass=@"}, `invalid argument "@" for "--gatewayclass" flag: invalid format: `},
		{"provisioner", []string{good, goodClass}, `error validating POD_NAMESPACE environment variable: must be set`},
	} {
		for _, name := range []string{"POD_IP", "POD_NAMESPACE", "POD_NAME"} {
			t.Setenv(name, "")
		}
		for mode := range strings.FieldsSeq(c.modes) {
			if name, value, ok := strings.Cut(mode, "="); ok {
				t.Setenv(name, value)
			}
		}
		mode, _, _ := strings.Cut(c.modes, " POD")
		for mode := range strings.FieldsSeq(mode) {
			root := newRoot()
			root.SetArgs(append([]string{mode + "-mode"}, c.args...))
			cmd, err := root.ExecuteContextC(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s-mode %q: %v\nwant %s", mode, c.args, err, c.want)
			} else if code := exitCode(cmd, err); code != exitUsage {
				t.Errorf("%s-mode %q: exit code %d", mode, c.args, code)
			}
		}
	}
}
