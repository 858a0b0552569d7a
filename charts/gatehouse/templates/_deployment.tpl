{{/* A Deployment of controllers: those of a release, or those that make fleets apart from them. */}}
{{- define "gatehouse.deployment" -}}
{{- $root := .root -}}
{{- $name := include "gatehouse.name" $root -}}
{{- $config := include "gatehouse.config" $root | fromYaml -}}
{{- $ports := $config.ports -}}
{{- $v := $root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- .labels | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  selector:
    matchLabels:
      {{- .selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- .labels | nindent 8 }}
        {{- with $v.pod.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- $annotations := dict -}}
      {{- if $ports.metrics -}}
      {{- $annotations = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString $ports.metrics) "prometheus.io/path" "/metrics" -}}
      {{- end -}}
      {{- with merge (deepCopy $v.pod.annotations) $annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      {{- with $v.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $v.pod.terminationGracePeriodSeconds }}
      {{- with $v.pod.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: controller
          image: {{ include "gatehouse.image" $root }}
          imagePullPolicy: {{ $v.image.pullPolicy }}
          args: [controller, --config, /etc/gatehouse/config.yaml{{ with .roles }}, --roles, {{ . }}{{ end }}]
          env:
            - name: GATEHOUSE_POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: GATEHOUSE_POD_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            - name: GATEHOUSE_POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
            # What proxies run, unless their parameters say otherwise.
            - name: GATEHOUSE_IMAGE
              value: {{ $config.infrastructure.image | default (include "gatehouse.image" $root) }}
            {{- with $v.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- if .serves }}
            - name: xds
              containerPort: {{ $ports.xds }}
            - name: api
              containerPort: {{ $ports.api }}
            {{- end }}
            {{- if $ports.metrics }}
            - name: metrics
              containerPort: {{ $ports.metrics }}
            {{- end }}
            {{- if and .serves $ports.fleetAPI }}
            - name: fleet-api
              containerPort: {{ $ports.fleetAPI }}
            {{- end }}
            - name: health
              containerPort: {{ $ports.health }}
          livenessProbe:
            httpGet:
              path: /healthz
              port: health
            initialDelaySeconds: 10
            periodSeconds: 10
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: health
            periodSeconds: 2
          {{- with .resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: config
              mountPath: /etc/gatehouse
              readOnly: true
            {{- with $v.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: config
          configMap:
            name: {{ $name }}
        {{- with $v.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $v.pod.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $v.pod.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $v.pod.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- if $v.pod.topologySpreadConstraints }}
        {{- toYaml $v.pod.topologySpreadConstraints | nindent 8 }}
        {{- else }}
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- .selector | nindent 14 }}
        {{- end }}
{{- end -}}
