package condition

// ForeignPolicy says that another implementation's policy has no effect on what Gatehouse serves of its targets.
// Ours is the kind that does the like here; empty for none.
func ForeignPolicy(of, targets, ours string) string {
	text := "it is a policy of " + of + ", and has no effect on what Gatehouse serves for " + targets
	switch ours {
	case "AuthPolicy":
		text += ": nobody is refused there by it"
	case "RateLimitPolicy":
		text += ": nothing is limited there by it"
	}
	if ours != "" {
		text += "; the kind " + ours + " of gatehouse.dev does the like"
	}
	return text
}
