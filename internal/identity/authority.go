package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Authority signs the certificates of proxies and controllers. All controllers
// read one Secret. Each of them creates it where there is none, and replaces roots when it
// is time; the API server accepts the write of only one.
type Authority struct {
	o   Options
	log *slog.Logger

	ready chan struct{} // closed when there are roots and a certificate of our own

	mu     sync.Mutex
	secret *corev1.Secret // as it was read last
	roots  *roots
	pool   *x509.CertPool
	bundle []byte
	next   chan struct{} // closed when the bundle changes
	own    *tls.Certificate
	renew  time.Time // when own is to be renewed
	signer *root     // that signed own
}

// NewAuthority returns an authority that can do nothing before Run.
func NewAuthority(o Options) *Authority {
	o = o.withDefaults()
	return &Authority{o: o, log: o.Log, ready: make(chan struct{}), next: make(chan struct{})}
}

// Ready is closed when the authority can sign and be trusted.
func (a *Authority) Ready() <-chan struct{} { return a.ready }

// Bundle returns the certificates of all roots to trust, in PEM; nil before Ready.
func (a *Authority) Bundle() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bundle
}

// Next returns a channel that is closed when the bundle changes next. A caller that
// follows the bundle gets the channel, then the bundle, then waits for the channel.
func (a *Authority) Next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Run follows the Secret until the context ends. What it can't read or do is
// logged and tried again; the last good roots are used until then.
func (a *Authority) Run(ctx context.Context) {
	tick := time.NewTicker(a.o.Interval)
	defer tick.Stop()
	failed := ""
	for {
		err := a.follow(ctx, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != failed:
			a.log.Error("the authority can't be followed; trying again", "error", err)
			failed = err.Error()
		case err == nil && failed != "":
			a.log.Info("the authority can be followed again")
			failed = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// follow reads the Secret, makes the next step if one is due, and renews our own
// certificate.
func (a *Authority) follow(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	secret, r, err := a.read(ctx)
	if err != nil {
		// What we know serves on, with a certificate that is still valid.
		_ = a.serve(now)
		return err
	}
	next, err := r.advance(now, a.o.periods())
	if err != nil {
		return err
	}
	if next != r {
		if secret, err = a.write(ctx, secret, next); err != nil {
			return err
		}
		if secret == nil {
			return a.follow(ctx, now) // another controller was first
		}
		a.log.Info("the authority's roots have changed",
			"trusted", len(next.trusted()), "signs-until", next.current.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	a.use(secret, next)
	return errors.Join(a.serve(now), a.publish(ctx))
}

// read returns the Secret and what it says; nil if there is none.
func (a *Authority) read(ctx context.Context) (*corev1.Secret, *roots, error) {
	secret := &corev1.Secret{}
	err := a.o.Client.Get(ctx, client.ObjectKey{Namespace: a.o.Namespace, Name: a.o.Secret}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("Secret %s/%s: %w", a.o.Namespace, a.o.Secret, err) //nolint:revive // a kind's name
	}
	if known := a.known(secret); known != nil {
		return secret, known, nil
	}
	r, err := parseRoots(secret.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("Secret %s/%s: %w; mend it, or delete it to have a new one made", //nolint:revive // a kind's name
			a.o.Namespace, a.o.Secret, err)
	}
	return secret, r, nil
}

// known returns the roots of a Secret that has not changed since it was read.
func (a *Authority) known(secret *corev1.Secret) *roots {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secret != nil && a.secret.UID == secret.UID && a.secret.ResourceVersion == secret.ResourceVersion {
		return a.roots
	}
	return nil
}

// write stores roots in the Secret, in a new one if there is none; nil if another
// controller was first.
func (a *Authority) write(ctx context.Context, old *corev1.Secret, r *roots) (*corev1.Secret, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	var secret *corev1.Secret
	if old == nil {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: a.o.Namespace, Name: a.o.Secret,
				Labels: map[string]string{"app.kubernetes.io/managed-by": "gatehouse"},
			},
			Type: corev1.SecretTypeOpaque,
			Data: data,
		}
		err = a.o.Client.Create(ctx, secret)
	} else {
		secret = old.DeepCopy()
		secret.Data = data
		err = a.o.Client.Update(ctx, secret)
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), old != nil && apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("Secret %s/%s: %w", a.o.Namespace, a.o.Secret, err) //nolint:revive // a kind's name
	}
	return secret, nil
}

// use puts roots in force.
func (a *Authority) use(secret *corev1.Secret, r *roots) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secret = secret
	if a.roots == r {
		return
	}
	a.roots, a.pool = r, r.pool()
	if bundle := r.bundle(); string(bundle) != string(a.bundle) {
		a.bundle = bundle
		close(a.next)
		a.next = make(chan struct{})
	}
}
