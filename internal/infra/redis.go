package infra

import (
	"cmp"
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

	secretKind    = "Secret"
	configMapKind = "ConfigMap"
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
	if r.SecretRef != nil {
		args = append(args, "--redis-credentials="+redisDir)
	}
	if r.TLS != nil {
		args = append(args, "--redis-tls")
		if r.TLS.ServerName != nil {
			args = append(args, "--redis-server-name="+*r.TLS.ServerName)
		}
		if r.TLS.CACertificateRef != nil {
			args = append(args, "--redis-ca-file="+redisDir+"/"+authorityKey)
		}
	}
	var sources []corev1.VolumeProjection
	for _, file := range RedisFiles(r) {
		sources = append(sources, file.projection())
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

// RedisFile is an entry of an object in the fleet's namespace that the pods of a Redis get as a
// file of its name.
type RedisFile struct {
	Kind     string // Secret or ConfigMap
	Name     string
	Entry    string
	Optional bool // pods don't wait for it
}

// RedisFiles are those that a Redis needs.
func RedisFiles(r *v1alpha1.Redis) (out []RedisFile) {
	if ref := r.SecretRef; ref != nil {
		out = append(out, RedisFile{secretKind, ref.Name, passwordKey, false}, RedisFile{secretKind, ref.Name, userKey, true})
	}
	if r.TLS != nil && r.TLS.CACertificateRef != nil {
		ref := r.TLS.CACertificateRef
		out = append(out, RedisFile{cmp.Or(ref.Kind, configMapKind), ref.Name, authorityKey, false})
	}
	return out
}

func (f RedisFile) projection() corev1.VolumeProjection {
	from := corev1.LocalObjectReference{Name: f.Name}
	items := []corev1.KeyToPath{{Key: f.Entry, Path: f.Entry}}
	var optional *bool
	if f.Optional {
		optional = new(true)
	}
	if f.Kind == secretKind {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: from, Items: items, Optional: optional}}
	}
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: from, Items: items, Optional: optional}}
}
