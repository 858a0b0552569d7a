package main

import (
	"os"
	"path/filepath"
)

const nodeName = "node"

// components are what runs on the node, with their files. They need no order:
// whoever can't do without another is started again until it is there.
func components(dir string) ([]component, error) {
	values := map[string]string{
		"dir":     dir,
		"cgroup":  controlGroup(dir),
		"plugins": filepath.Dir(plugins),
		"pause":   pauseImage,
		"pods":    podRange,
		"node":    nodeName,
		"dns":     dnsService,
	}
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(os.Expand(text, func(key string) string { return values[key] })), 0o644); err != nil {
			return nil, err
		}
	}
	pki := filepath.Join(dir, "pki") + "/"
	return []component{
		{"etcd", []string{
			"--data-dir=" + dir + "/etcd",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--unsafe-no-fsync", // nothing here is worth keeping
		}},
		{"kube-apiserver", []string{
			"--etcd-servers=http://127.0.0.1:2379",
			"--advertise-address=" + nodeAddress,
			"--secure-port=6443",
			"--tls-cert-file=" + pki + "apiserver.crt", "--tls-private-key-file=" + pki + "apiserver.key",
			"--client-ca-file=" + pki + "ca.crt",
			"--service-account-key-file=" + pki + "serviceaccounts.pub",
			"--service-account-signing-key-file=" + pki + "serviceaccounts.key",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-cluster-ip-range=" + serviceRange,
			"--authorization-mode=Node,RBAC",
			"--allow-privileged=true",
			// Gatehouse says of itself that it supports them, where they are.
			"--feature-gates=ClusterTrustBundle=true", "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true",
			// Tests create thousands of objects at once.
			"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
			"--kubelet-client-certificate=" + pki + "apiserver-kubelet.crt", "--kubelet-client-key=" + pki + "apiserver-kubelet.key",
			// Aggregated APIs.
			"--requestheader-client-ca-file=" + pki + "front-proxy-ca.crt", "--requestheader-allowed-names=" + frontProxy,
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + pki + "front-proxy-client.crt", "--proxy-client-key-file=" + pki + "front-proxy-client.key",
			// Else it looks for the node's name in DNS to read logs of pods.
			"--kubelet-preferred-address-types=InternalIP",
			// What is written, and all that Gatehouse asks for.
			"--audit-policy-file=" + dir + "/audit-policy.yaml", "--audit-log-path=" + dir + "/log/audit.log",
			"--audit-log-maxsize=1000",
		}},
		{"kube-controller-manager", []string{
			"--kubeconfig=" + dir + "/kube-controller-manager.conf",
			"--service-account-private-key-file=" + pki + "serviceaccounts.key",
			"--root-ca-file=" + pki + "ca.crt",
			"--use-service-account-credentials=true",
			"--cluster-signing-cert-file=" + pki + "ca.crt", "--cluster-signing-key-file=" + pki + "ca.key",
			"--leader-elect=false", "--allocate-node-cidrs=false",
			"--flex-volume-plugin-dir=" + dir + "/kubelet/plugins", // made where it isn't there
		}},
		{"kube-scheduler", []string{"--kubeconfig=" + dir + "/kube-scheduler.conf", "--leader-elect=false"}},
		{"containerd", []string{"--config=" + dir + "/containerd.toml"}},
		{"kubelet", []string{
			"--config=" + dir + "/kubelet.yaml", "--kubeconfig=" + dir + "/kubelet.conf",
			"--hostname-override=" + nodeName, "--node-ip=" + nodeAddress,
			"--root-dir=" + dir + "/kubelet",
		}},
		{"kube-proxy", []string{"--config=" + dir + "/kube-proxy.yaml"}},
	}, nil
}

var files = map[string]string{
	"audit-policy.yaml": `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users:
  - system:serviceaccount:gatehouse-system:gatehouse
  - system:serviceaccount:gatehouse-system:gatehouse-infrastructure
  - system:serviceaccount:gatehouse-provisioner:gatehouse-provisioner
  - system:serviceaccount:gatehouse-provisioner:gatehouse-static
- {level: None, userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]}
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
`,

	// Without CAP_SYS_RESOURCE, as in many containers, oom_score_adj can't be
	// lowered, and runc would fail with "can't get final child's PID from pipe".
	"containerd.toml": `version = 2
root = "${dir}/containerd"
[plugins."io.containerd.internal.v1.opt"]
  path = "${dir}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "${pause}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${plugins}"
    conf_dir = "${dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`,

	// ptp: everything between pods is routed. On a bridge, what a pod answers to
	// another by way of a Service would pass the rules that rewrite it only where
	// the kernel has br_netfilter.
	"cni/10-pods.conflist": `{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {"type": "ptp", "ipMasq": false,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "${pods}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`,

	// failCgroupV1: control groups may be of version 1, or of both.
	// cgroupDriver: there may be no systemd.
	// cgroupRoot: see controlGroup.
	// imageGCHighThresholdPercent: images can't be fetched again.
	// resolvConf: nobody out there could be asked.
	"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  x509: {clientCAFile: ${dir}/pki/ca.crt}
  webhook: {enabled: true}
  anonymous: {enabled: false}
authorization: {mode: Webhook}
tlsCertFile: ${dir}/pki/kubelet.crt
tlsPrivateKeyFile: ${dir}/pki/kubelet.key
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /${cgroup}
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
podLogsDir: ${dir}/log/pods
volumePluginDir: ${dir}/kubelet/plugins
resolvConf: ${dir}/resolv.conf
clusterDNS: [${dns}]
clusterDomain: cluster.local
maxPods: 250
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
`,
	"resolv.conf": "",

	// mode: nftables serves ClusterIPs, NodePorts and addresses of load balancers
	// from the node itself.
	// conntrack: a network namespace may not set the kernel's limits.
	"kube-proxy.yaml": `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: ${dir}/kube-proxy.conf}
mode: nftables
clusterCIDR: ${pods}
hostnameOverride: ${node}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`,
}
