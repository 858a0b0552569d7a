package infra

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// redisDir is where a container that counts has what it needs for its Redis.
const redisDir = "/var/run/secrets/gatehouse.dev/redis" //nolint:gosec // a path

const (
	redisPort    = 6379
	userKey      = "username"
	passwordKey  = "password"
	authorityKey = "ca.crt" // of the Redis
)

// redis is what a container that counts is started with where a Redis keeps the counts, and the
// files for it, if it needs any. A pod whose files are missing waits for them, and those that run
// go on with what they have.
func (f *fleet) redis() (args []string, volume *corev1.Volume, mount *corev1.VolumeMount) {
	if f.settings.Limits == nil || f.settings.Limits.Redis == nil {
		return nil, nil, nil
	}
	r := f.settings.Limits.Redis
	port := int(r.Port)
	if port == 0 { // the schema's default, where there is no schema
		port = redisPort
	}
	args = []string{"--redis=" + net.JoinHostPort(r.Host, strconv.Itoa(port))}
	var sources []corev1.VolumeProjection
	if r.SecretRef != nil {
		args = append(args, "--redis-credentials="+redisDir)
		user := secretEntry(r.SecretRef.Name, userKey)
		user.Secret.Optional = new(true)
		sources = append(sources, secretEntry(r.SecretRef.Name, passwordKey), user)
	}
	if r.TLS != nil {
		args = append(args, "--redis-tls")
		if r.TLS.ServerName != nil {
			args = append(args, "--redis-server-name="+*r.TLS.ServerName)
		}
		if ref := r.TLS.CACertificateRef; ref != nil {
			args = append(args, "--redis-ca-file="+redisDir+"/"+authorityKey)
			sources = append(sources, authority(ref))
		}
	}
	if len(sources) == 0 {
		return args, nil, nil
	}
	return args,
		&corev1.Volume{Name: "gatehouse-redis", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To[int32](0o440)},
		}},
		&corev1.VolumeMount{Name: "gatehouse-redis", MountPath: redisDir, ReadOnly: true}
}

func authority(ref *v1alpha1.CACertificateRef) corev1.VolumeProjection {
	if ref.Kind == "Secret" {
		return secretEntry(ref.Name, authorityKey)
	}
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name},
		Items:                []corev1.KeyToPath{{Key: authorityKey, Path: authorityKey}},
	}}
}

// secretEntry is an entry of a Secret as a file of its name.
func secretEntry(secret, key string) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret},
		Items:                []corev1.KeyToPath{{Key: key, Path: key}},
	}}
}
