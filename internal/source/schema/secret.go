package schema

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// requiredKeys are what the API server wants to find in Secrets of known types.
var requiredKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
}

// finishSecret merges stringData into data, as the API server does when it
// stores a Secret. No error of it shows a value.
func finishSecret(secret *corev1.Secret) field.ErrorList {
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = make(map[string][]byte, len(secret.StringData))
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}

	path := field.NewPath("data")
	var errs field.ErrorList
	size := 0
	for key, value := range secret.Data {
		errs = append(errs, checkDataKey(path, key)...)
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}
	for _, key := range requiredKeys[secret.Type] {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), fmt.Sprintf("a Secret of type %s has it", secret.Type)))
		}
	}
	slices.SortFunc(errs, byText)
	return errs
}

func checkDataKey(path *field.Path, key string) field.ErrorList {
	if msgs := validation.IsConfigMapKey(key); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path, key, strings.Join(msgs, "; "))}
	}
	return nil
}
