{{/* The name of all objects: that of the release, with "gatehouse" in it. */}}
{{- define "gatehouse.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "gatehouse" $name) -}}{{- $name = printf "%s-gatehouse" $name -}}{{- end -}}
{{- $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The pods that make fleets, where they are apart: none of those that the Service leads to. */}}
{{- define "gatehouse.infrastructureSelector" -}}
app.kubernetes.io/name: gatehouse-infrastructure
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What making fleets takes. */}}
{{- define "gatehouse.fleetRules" -}}
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [daemonsets, deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
{{- end -}}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/component: controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* By digest where it is known, since a tag can be pushed again. */}}
{{- define "gatehouse.image" -}}
{{- $i := .Values.image -}}
{{- $released := "" -}}
{{- with .Chart.Annotations -}}{{- $released = index . "gatehouse.dev/image-digest" -}}{{- end -}}
{{- if $i.digest -}}{{ $i.repository }}@{{ $i.digest }}
{{- else if and $released (not $i.tag) -}}{{ $i.repository }}@{{ $released }}
{{- else -}}{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}{{- end -}}
{{- end -}}

{{/* The Configuration: values.config laid over what follows from the release. */}}
{{- define "gatehouse.config" -}}
{{- $name := include "gatehouse.name" . -}}
{{- $own := dict
    "apiVersion" "config.gatehouse.dev/v1alpha1"
    "kind" "Configuration"
    "controllerName" "gatehouse.dev/controller"
    "infrastructure" (dict "service" $name "imagePullPolicy" .Values.image.pullPolicy)
    "leaderElection" (dict "name" (printf "%s-leader" $name))
    "ports" (dict "xds" 18000 "api" 18001 "metrics" 8080 "health" 8081) -}}
{{- if .Values.fleetAPI.enabled -}}{{- $_ := set $own.ports "fleetAPI" 18002 -}}{{- end -}}
{{- with .Values.gatewayClass -}}
{{- if .create -}}
{{- $class := dict "name" .name "labels" (include "gatehouse.labels" $ | fromYaml) -}}
{{- with .annotations -}}{{- $_ := set $class "annotations" . -}}{{- end -}}
{{- with .description -}}{{- $_ := set $class "description" . -}}{{- end -}}
{{- with .parametersRef -}}{{- $_ := set $class "parametersRef" (dict "name" .name "namespace" .namespace) -}}{{- end -}}
{{- $_ := set $own "gatewayClass" $class -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite $own (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The Lease of the controllerName, in namespace default: as ClaimName of internal/configuration. */}}
{{- define "gatehouse.claim" -}}
gatehouse-{{ (include "gatehouse.config" . | fromYaml).controllerName | sha256sum | trunc 16 }}
{{- end -}}

{{/* Whether Ingresses are served; empty if not. */}}
{{- define "gatehouse.ingresses" -}}
{{- range (.Values.config.sources | default list) -}}
{{- if .ingress -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The namespaces that are watched, as JSON: an empty list stands for all. */}}
{{- define "gatehouse.namespaces" -}}
{{- $names := list -}}
{{- range (.Values.config.sources | default list) -}}
{{- if .kubernetes -}}{{- $names = concat $names (.kubernetes.namespaces | default list) -}}{{- end -}}
{{- end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{/* The namespaces that fleets may be in, likewise: as Places.Watched of internal/infra. */}}
{{- define "gatehouse.fleetNamespaces" -}}
{{- $in := .Values.config.infrastructure | default dict -}}
{{- $names := include "gatehouse.namespaces" . | fromJsonArray -}}
{{- $further := compact (list $in.namespace) -}}
{{- $ofGateways := not $in.namespace -}}
{{- if kindIs "slice" $in.formerNamespaces -}}
{{- range $in.formerNamespaces -}}
{{- if eq . "*" -}}{{- $ofGateways = true -}}{{- else -}}{{- $further = append $further . -}}{{- end -}}
{{- end -}}
{{- else -}}{{- $ofGateways = true -}}{{- end -}}
{{- if not $ofGateways -}}{{- $names = $further -}}
{{- else if $names -}}{{- $names = concat $names $further -}}{{- end -}}
{{- $names | uniq | toJson -}}
{{- end -}}
