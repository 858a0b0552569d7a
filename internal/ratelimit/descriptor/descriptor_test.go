package descriptor

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is written is what is read.
func TestRatesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Rate{
			Limit:  rapid.Uint32Range(1, MaxLimit).Draw(t, "limit"),
			Window: time.Duration(rapid.Int64Range(1000, int64(MaxWindow/time.Millisecond)).Draw(t, "ms")) * time.Millisecond,
		}
		got, err := ParseRate(want.String())
		if err != nil || got != want {
			t.Fatalf("%s is read as %s: %v", want, got, err)
		}
	})
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]string{
		"100/10s":                                "",
		"1/1s":                                   "",
		"1000000000/744h":                        "",
		"5/1m30s":                                "",
		"5/1.5s":                                 "",
		"":                                       "such as",
		"100":                                    "such as",
		"100/":                                   "such as",
		"/10s":                                   "such as",
		"-1/10s":                                 "such as",
		"+1/10s":                                 "such as",
		"1.5/10s":                                "such as",
		"100/10":                                 "such as",
		"100/10s/2":                              "such as",
		"0/10s":                                  "a limit is",
		"1000000001/10s":                         "a limit is",
		"99999999999/10s":                        "a limit is",
		"1/0s":                                   "a window is",
		"1/999ms":                                "a window is",
		"1/-10s":                                 "a window is",
		"1/744h0m0.001s":                         "a window is",
		"1/1.0001s":                              "a window is",
		"1/10000000h":                            "such as",
		"1/" + strings.Repeat("0", 1<<20) + "1s": "such as",
	} {
		_, err := ParseRate(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}
