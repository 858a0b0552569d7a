package bars

import (
	"flag"
	"io"
	"slices"
	"testing"
)

func TestChosen(t *testing.T) {
	all := []string{"idle", "kill", "routes"}
	if got, err := Chosen("", all); err != nil || !slices.Equal(got, all) {
		t.Errorf("without a list: %q, %v", got, err)
	}
	if got, err := Chosen("routes,idle", all); err != nil || !slices.Equal(got, []string{"routes", "idle"}) {
		t.Errorf("of a list: %q, %v", got, err)
	}
	if got, err := Chosen("idle,restart", all); err == nil {
		t.Errorf("a name that is none is accepted: %q", got)
	}
}

func TestEnforced(t *testing.T) {
	for args, want := range map[string]struct{ enforced, fails bool }{
		"":             {enforced: true},
		"-bars=report": {},
		"-bars=ignore": {fails: true},
	} {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		enforced := Enforced(fs)
		var all []string
		if args != "" {
			all = append(all, args)
		}
		err := fs.Parse(all)
		if (err != nil) != want.fails || err == nil && *enforced != want.enforced {
			t.Errorf("%q: enforced %t, error %v", args, *enforced, err)
		}
	}
}
