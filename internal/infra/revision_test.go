package infra

import "testing"

func TestRevisionIn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web-gatehouse":                            "",
		"web-gatehouse-557ff75f6-686lz":            "",
		"web-gatehouse-r0e6b6849":                  "r0e6b6849",
		"web-gatehouse-r0e6b6849-557ff75f6-686lz":  "r0e6b6849",
		"web-gatehouse-r0e6b6849-557ff75f6686lz":   "", // cut, since it is long
		"web-gatehouse-preview-6153ae98":           "",
		"r0e6b6849":                                "",
		"web-r0e6b6849-gatehouse-557ff75f6-686lz7": "",
	} {
		if got := RevisionIn(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
