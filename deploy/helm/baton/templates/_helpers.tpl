{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The prefix of all names. Short enough that the name of a pod begins with the whole name of its Deployment. */}}
{{- define "baton.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Labels that select pods: (dict "root" $ "component" "prefill"). Without a component, the pods of all. */}}
{{- define "baton.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* Labels of every object: the same argument. */}}
{{- define "baton.labels" -}}
{{ include "baton.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: baton
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Facts of a component, as YAML: program, ports, and the health service that its readiness asks for. */}}
{{- define "baton.facts" -}}
{{- if eq . "router" -}}
{program: baton-router, grpc: 50051, metrics: 9400, health: baton.v1.Inference}
{{- else if eq . "prefill" -}}
{program: baton-prefill, grpc: 50061, metrics: 9401, health: baton.v1.PrefillWorker}
{{- else -}}
{program: baton-decode, grpc: 50071, metrics: 9402, handoff: 50081, health: baton.v1.DecodeWorker}
{{- end -}}
{{- end }}

{{/* The pools that have workers, separated by spaces. Fails if these pools cannot serve. */}}
{{- define "baton.pools" -}}
{{- include "baton.checkPools" . -}}
{{- $pools := list -}}
{{- range $role := list "prefill" "decode" "both" -}}
{{- if gt (int (index $.Values $role).replicas) 0 -}}{{- $pools = append $pools $role -}}{{- end -}}
{{- end -}}
{{- join " " $pools -}}
{{- end }}

{{- define "baton.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end }}

{{- define "baton.serviceAccount" -}}
{{- default (ternary (include "baton.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{- define "baton.secretName" -}}
{{- default (printf "%s-secret" (include "baton.fullname" .)) .Values.secret.existingSecret -}}
{{- end }}

{{/* Every address of the pod, with the port: (dict "root" $ "port" 50061). */}}
{{- define "baton.listen" -}}
{{- ternary "[::]" "0.0.0.0" (eq .root.Values.ipFamily "IPv6") }}:{{ .port }}
{{- end }}

{{- define "baton.ipFamily" -}}
ipFamilyPolicy: SingleStack
ipFamilies: [{{ .Values.ipFamily }}]
{{- end }}

{{/* A quantity of Kubernetes, in bytes: "1.5Gi" is 1610612736. */}}
{{- define "baton.bytes" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if not (hasKey $factors $unit) -}}
{{- fail (printf "%s: expected an amount of memory with the unit Ki, Mi, Gi, Ti, k, M, G or T, such as 2Gi" $text) -}}
{{- end -}}
{{- mulf (float64 (trimSuffix $unit $text)) (get $factors $unit) | int64 -}}
{{- end }}

{{/* Compute threads of a pool. A worker counts the node's CPUs and knows nothing of a pod's share of their time. */}}
{{- define "baton.threads" -}}
{{- $limits := default dict .resources.limits -}}
{{- $requests := default dict .resources.requests -}}
{{- $cpu := toString (default (default "" $requests.cpu) $limits.cpu) -}}
{{- if or .threads (not $cpu) -}}
{{- .threads | int -}}
{{- else if hasSuffix "m" $cpu -}}
{{- divf (float64 (trimSuffix "m" $cpu)) 1000 | ceil | int -}}
{{- else -}}
{{- float64 $cpu | ceil | int -}}
{{- end -}}
{{- end }}

{{/* Where workers find the model. */}}
{{- define "baton.modelPath" -}}
{{- if eq .Values.model.source "bundled" -}}
/usr/share/baton/models/demo-chat
{{- else -}}
{{- printf "/models/%s" (trimPrefix "/" .Values.model.path) | trimSuffix "/" -}}
{{- end -}}
{{- end }}
