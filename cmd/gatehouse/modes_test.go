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
		{"provisioner static", nil, `required flag(s) "gateway-ctlr-name", "gatewayclass" not set`},
		{"provisioner static", []string{good}, `required flag(s) "gatewayclass" not set`},
		{"provisioner static", []string{goodClass}, `required flag(s) "gateway-ctlr-name" not set`},
		{"provisioner static", []string{"--gateway-ctlr-name="}, `invalid argument "" for "--gateway-ctlr-name" flag: must be set`},
		{"provisioner static", []string{"--gateway-ctlr-name=x"}, `invalid argument "x" for "--gateway-ctlr-name" flag: invalid format; must be DOMAIN/PATH`},
		{"provisioner static", []string{"--gateway-ctlr-name=example.com/x"}, `invalid argument "example.com/x" for "--gateway-ctlr-name" flag: invalid domain: example.com; domain must be: gatehouse.dev`},
		{"provisioner static", []string{"--gateway-ctlr-name=gatehouse.dev/"}, `flag: invalid gateway controller name: gatehouse.dev/; expected format is DOMAIN/PATH`},
		{"provisioner static", []string{"--gateway-ctlr-name=gatehouse.dev/$%^ "}, `flag: invalid gateway controller name: gatehouse.dev/$%^ ; expected format is DOMAIN/PATH`},
		{"provisioner static", []string{"--gatewayclass="}, `invalid argument "" for "--gatewayclass" flag: must be set`},
		{"provisioner static", []string{"--gatewayclass=@"}, `invalid argument "@" for "--gatewayclass" flag: invalid format: `},
		{"static", []string{"--gateway="}, `invalid argument "" for "--gateway" flag: must be set`},
		{"static", []string{"--gateway=x"}, `invalid argument "x" for "--gateway" flag: invalid format; must be NAMESPACE/NAME`},
		{"static", []string{"--gateway=a/b/c"}, `invalid argument "a/b/c" for "--gateway" flag: invalid format; must be NAMESPACE/NAME`},
		{"static", []string{"--gateway=@/b"}, `invalid argument "@/b" for "--gateway" flag: invalid namespace name: `},
		{"static", []string{"--gateway=a/@"}, `invalid argument "a/@" for "--gateway" flag: invalid resource name: `},
		{"static", []string{"--update-gatewayclass-status="}, `invalid argument "" for "--update-gatewayclass-status" flag: strconv.ParseBool: parsing "": invalid syntax`},
		{"static", []string{"--update-gatewayclass-status=invalid"}, `flag: strconv.ParseBool: parsing "invalid": invalid syntax`},
		{"static", []string{"--metrics-port=80", good, goodClass}, `--metrics-port: 80 is not between 1024 and 65535`},
		{"static", []string{"--health-port=65536", good, goodClass}, `--health-port: 65536 is not between 1024 and 65535`},
		{"static", []string{"--health-port=9113", good, goodClass}, `--metrics-port and --health-port are both 9113`},
		{"static", []string{good, goodClass}, `error validating POD_IP environment variable: IP address must be set`},
		{"static POD_IP=1.2.3", []string{good, goodClass, "--gateway=a/b"}, `error validating POD_IP environment variable: "1.2.3" must be a valid IP address`},
		{"static POD_IP=1.2.3.4", []string{good, goodClass, "--gateway=a/b"}, `error validating POD_NAMESPACE environment variable: must be set`},
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
