package condition

// IngressRefused says that nothing of an Ingress is served, since something that protects it can't be converted.
func IngressRefused(annotation, why string) string {
	return "refused, and answered with 503, since it would let through what ingress-nginx doesn't: " + about(annotation, why)
}

// NotConverted says that a part of an Ingress has no effect.
func NotConverted(annotation, why string) string {
	return "served without a part of it: " + about(annotation, why)
}

func about(annotation, why string) string {
	if annotation == "" {
		return why
	}
	return annotation + ": " + why
}
